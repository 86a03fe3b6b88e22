/*-------------------------------------------------------------------------
 *
 * apply_ahead.h
 *	  Logical replication: messages that are received, or read, ahead of need,
 *	  and what they look up.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_APPLY_AHEAD_H
#define AIO_APPLY_AHEAD_H

struct BufFile;
struct LogicalRepRelMapEntry;
struct WalReceiverConn;
struct shm_mq_handle;

/* ------------------------------------------------------------------------
 * In place of upstream's functions (receive_ahead.c)
 * ------------------------------------------------------------------------
 */

extern int	AioReceiveMessage(struct WalReceiverConn *conn, char **buffer,
							  pgsocket *wait_fd);
extern int	AioReceiveFromLeader(struct shm_mq_handle *queue, Size *len,
								 void **data, bool nowait);
extern void AioReadSpooledMessage(struct BufFile *file, void *buffer,
								  size_t len);

/* ------------------------------------------------------------------------
 * Messages ahead (apply_ahead.c)
 * ------------------------------------------------------------------------
 */

/* What comes of asking for the next message. */
typedef enum AioNextMessage
{
	AIO_MESSAGE_READY,
	AIO_MESSAGE_NOT_YET,
	AIO_MESSAGE_NEVER,
} AioNextMessage;

/* Where messages come from. */
typedef struct AioMessageSource
{
	/* does not wait; the message has to be copied */
	AioNextMessage (*next) (void *arg, char **data, int *len);
	void	   *arg;
	int			prefix;			/* bytes before the action */
	bool		has_xid;		/* one comes after the action, in a stream */
} AioMessageSource;

typedef struct AioApplyAhead AioApplyAhead;

extern bool AioApplyMayBegin(void);
extern AioApplyAhead *AioApplyAheadMake(const AioMessageSource *source);
extern void AioApplyAheadDue(AioApplyAhead *ahead);
extern bool AioApplyAheadTake(AioApplyAhead *ahead, char **data, int *len);
extern bool AioApplyAheadActive(const AioApplyAhead *ahead);

/* ------------------------------------------------------------------------
 * Upstream's static variables
 * ------------------------------------------------------------------------
 */

/* relation_internals.c */
extern const struct LogicalRepRelMapEntry *AioFindRemoteRelation(uint32 id);

/* worker_internals.c */
extern bool AioInStream(void);
extern bool AioAppliesChangesOf(const struct LogicalRepRelMapEntry *entry);
extern bool AioAppliedIdentityIsFull(void);
extern bool AioAppliedColumnIsMissing(Oid relid, int column);

#endif							/* AIO_APPLY_AHEAD_H */

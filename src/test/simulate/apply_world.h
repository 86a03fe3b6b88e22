/*-------------------------------------------------------------------------
 *
 * apply_world.h
 *	  The little of a worker that applies changes which apply.c needs.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_APPLY_WORLD_H
#define SIMULATE_APPLY_WORLD_H

#include "server.h"
#include "utils/palloc.h"

#define INDEXES_MAX		6

/* ------------------------------------------------------------------------
 * Relations, and locks on them
 * ------------------------------------------------------------------------
 */

typedef int LOCKMODE;
typedef uint32 CommandId;

#define NoLock				0
#define RowExclusiveLock	3
#define AccessExclusiveLock	8

typedef enum LockTagType
{
	LOCKTAG_RELATION,
	LOCKTAG_RELATION_EXTEND,
	LOCKTAG_PAGE,
	LOCKTAG_OBJECT,
} LockTagType;

typedef struct LOCKTAG
{
	LockTagType locktag_type;
	Oid			oid;
} LOCKTAG;

/* A table, or an index. */
typedef struct RelationData
{
	Oid			oid;
	struct RelationData *table; /* of an index */
	int			row_code;		/* AioRowCode of a table */
	bool		collects;		/* its indexes' entries may be collected */
	bool		has_identity;
	int			nindexes;
	struct RelationData *indexes[INDEXES_MAX];
	int			opened;			/* by the statement that is simulated, */
	int			used;			/* and by the row that is worked on */
	bool		wanted;			/* somebody waits for a lock on it */
	int			waiting;		/* entries that wait */
} RelationData;

typedef struct RelationData *Relation;

#define RelationGetRelid(rel)	((rel)->oid)

extern Relation table_open(Oid relid, LOCKMODE mode);
extern void table_close(Relation rel, LOCKMODE mode);
extern void index_close(Relation index, LOCKMODE mode);
extern Oid	GetRelationIdentityOrPK(Relation rel);
extern bool LockHeldByMe(const LOCKTAG *tag, LOCKMODE mode, bool or_stronger);
extern bool AioMayDrainBeforeLock(const LOCKTAG *tag);
extern bool AioLockIsToBeHad(const LOCKTAG *tag, LOCKMODE mode, bool session);
extern bool AioSomebodyWaitsFor(Relation rel);

/* ------------------------------------------------------------------------
 * Statements, and what waits for them
 * ------------------------------------------------------------------------
 */

typedef struct ResultRelInfo
{
	Relation	ri_RelationDesc;
	int			ri_NumIndices;
	Relation	ri_IndexRelationDescs[INDEXES_MAX];
} ResultRelInfo;

typedef struct AioIndexBacklog
{
	bool		collects;
} AioIndexBacklog;

typedef struct AioTableBacklog
{
	struct AioTableBacklog *next;
	ResultRelInfo *rri;
	int			nindexes;
	AioIndexBacklog indexes[INDEXES_MAX];
} AioTableBacklog;

typedef struct AioStatementBacklog
{
	bool		draining;
	bool		sorting;
} AioStatementBacklog;

typedef struct EState
{
	MemoryContext es_query_cxt;
	uint64		es_processed;
	AioStatementBacklog backlog;
	AioTableBacklog *tables;
} EState;

#define makeNode(type)			((type *) memset(palloc(sizeof(type)), 0, sizeof(type)))

extern EState *CreateExecutorState(void);
extern void FreeExecutorState(EState *estate);
extern void InitResultRelInfo(ResultRelInfo *rri, Relation rel, int position,
							  ResultRelInfo *root, int options);
extern void ExecOpenIndices(ResultRelInfo *rri, bool speculative);
extern int	aio_debug_rows_before_batch;
extern int	aio_index_batch_memory;
extern void AioDrainStatement(EState *estate);
extern void AioDrainBeforeClosing(ResultRelInfo *rri);
extern void AioSumUpTable(AioTableBacklog *backlog);
extern AioStatementBacklog *AioFindStatement(const EState *estate);
extern bool AioPageIsInTheWay(const AioStatementBacklog *backlog);
extern AioTableBacklog *AioGetTableBacklogs(const EState *estate);
extern AioTableBacklog *AioGetTableBacklog(ResultRelInfo *rri, EState *estate,
										   CommandId cid, void *cstate);
extern bool AioBacklogTakes(AioTableBacklog *backlog, CommandId cid, int rows);
extern void AioEndApply(void);
extern AioTableBacklog *AioApplyBacklog(ResultRelInfo *rri, CommandId cid);
extern bool AioAppliedIdentityIsFull(void);

/* ------------------------------------------------------------------------
 * The rest of a server
 * ------------------------------------------------------------------------
 */

typedef enum XactEvent
{
	XACT_EVENT_COMMIT,
	XACT_EVENT_PRE_COMMIT,
	XACT_EVENT_PARALLEL_PRE_COMMIT,
	XACT_EVENT_PRE_PREPARE,
	XACT_EVENT_ABORT,
	XACT_EVENT_PARALLEL_ABORT,
} XactEvent;

typedef void (*XactCallback) (XactEvent event, void *arg);

extern void RegisterXactCallback(XactCallback callback, void *arg);
extern bool IsTransactionState(void);
extern int	GetCurrentTransactionNestLevel(void);
extern bool IsLogicalWorker(void);
extern int	max_locks_per_xact;
extern int	max_prepared_xacts;
extern int	MaxBackends;
extern MemoryContext TopTransactionContext;
extern ResourceOwner TopTransactionResourceOwner;

typedef enum LogicalRepMsgType
{
	LOGICAL_REP_MSG_BEGIN = 'B',
	LOGICAL_REP_MSG_COMMIT = 'C',
	LOGICAL_REP_MSG_INSERT = 'I',
	LOGICAL_REP_MSG_UPDATE = 'U',
	LOGICAL_REP_MSG_DELETE = 'D',
	LOGICAL_REP_MSG_TRUNCATE = 'T',
	LOGICAL_REP_MSG_RELATION = 'R',
	LOGICAL_REP_MSG_TYPE = 'Y',
} LogicalRepMsgType;

typedef struct TriggerData
{
	int			tg_event;
	Relation	tg_relation;
} TriggerData;

#define TRIGGER_FIRED_BEFORE(event)	((event) == 1)

typedef struct instr_time
{
	uint64		time;			/* of the fake clock, in microseconds */
} instr_time;

extern uint64 sim_now;

#define INSTR_TIME_SET_CURRENT(t)	((t).time = sim_now)
#define INSTR_TIME_SUBTRACT(x, y)	((x).time -= (y).time)
#define INSTR_TIME_GET_MILLISEC(t)	((double) (t).time / 1000.0)

/* utils/hsearch.h, for tables by Oid */
typedef struct HTAB HTAB;

typedef struct HASHCTL
{
	Size		keysize;
	Size		entrysize;
	MemoryContext hcxt;
} HASHCTL;

typedef struct HASH_SEQ_STATUS
{
	HTAB	   *table;
	int			next;
} HASH_SEQ_STATUS;

typedef enum HASHACTION
{
	HASH_FIND,
	HASH_ENTER,
} HASHACTION;

#define HASH_ELEM		1
#define HASH_BLOBS		2
#define HASH_CONTEXT	4

extern HTAB *hash_create(const char *name, long nelem, const HASHCTL *ctl,
						 int flags);
extern void *hash_search(HTAB *table, const void *key, HASHACTION action,
						 bool *found);
extern void hash_seq_init(HASH_SEQ_STATUS *status, HTAB *table);
extern void *hash_seq_search(HASH_SEQ_STATUS *status);

#endif							/* SIMULATE_APPLY_WORLD_H */

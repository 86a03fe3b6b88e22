/*-------------------------------------------------------------------------
 *
 * faultfs.h
 *	  What the files of faultfs share.
 *
 * faultfs.c	options, mounting, and the power switch
 * requests.c	what the kernel asks
 * nodes.c		files and directories that the kernel knows
 * names.c		changes of names, and how to undo them
 * data.c		changes of files' contents, and how to undo them
 * rules.c		which requests fail, wait, or are cut short
 * control.c	commands on a socket
 *
 * Locks, in the order in which they are taken; all are released while a request
 * is being delayed, and while the disk below syncs:
 *
 *	 power			shared by requests that change something; exclusive to lose
 *					power, such that it finds nothing half done
 *	 names			one change of names at a time
 *	 Node.writing	shared by writes of a file; exclusive to find none half done
 *	 Node.lock		a file's size, and what of it can be undone
 *	 those static in a file, which last for moments
 *
 * Functions that return an int return 0 or an errno.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef FAULTFS_H
#define FAULTFS_H

#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* what no power loss tears */
#define SECTOR			512

/* what pre-images are kept in */
#define BLOCK			4096
#define BLOCK_SECTORS	(BLOCK / SECTOR)

/* No file grows beyond this; it bounds what we keep per file. */
#define MAX_FILE_SIZE	((off_t) 1 << 44)

/* Whoever wants to be alone comes before those who keep coming. */
#define LOCK_INITIALIZER PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP

/* in the root of the directory below, and visible nowhere else */
#define HIDDEN			".faultfs"

#define Max(x, y)		((x) > (y) ? (x) : (y))
#define Min(x, y)		((x) < (y) ? (x) : (y))

/* classes of requests, as rules and counters know them */
typedef enum Operation
{
	OP_READ,
	OP_WRITE,
	OP_FSYNC,
	OP_FALLOCATE,
	OP_TRUNCATE,
	OP_OPEN,
	OP_CREATE,
	OP_REMOVE,
	OP_RENAME,
	OPERATIONS
} Operation;

/* What of a file can be undone; private to data.c. */
typedef struct Generation Generation;

/*
 * A file or directory.  It lives while somebody refers to it: the kernel, as
 * often as we told it; children; changes of names and data that can be undone.
 */
typedef struct Node
{
	/* of nodes.c */
	struct Node *next;			/* in the same bucket */
	ino_t		ino;
	mode_t		type;
	int			handle;			/* opened with O_PATH */
	uint64_t	references;
	struct Node *parent;		/* where it was seen last, for rules */
	char	   *name;

	/* names of it that are removed in a way that can be undone */
	atomic_uint trashed;

	/* content; protected by the lock, while writes may be under way */
	pthread_rwlock_t writing;
	pthread_mutex_t lock;
	int			fd;				/* or -1; for all who have it open */
	bool		writable;		/* the fd is */
	unsigned int opens;
	off_t		size;			/* valid while there is an fd */
	uint64_t	charge;			/* what it uses, likewise */
	bool		gone;			/* it uses nothing any more */

	/* of data.c */
	Generation *active;			/* what changed since the last sync began */
	Generation *sealed;			/* what changed before, while a sync runs */
	bool		syncing;
	pthread_cond_t synced;
	struct Node *older,			/* in the list of those with volatile data */
			   *newer;
} Node;

/* What rules have decided for a request. */
typedef struct Verdict
{
	uint64_t	delay;			/* us */
	int			error;			/* or 0 */
	bool		lose;			/* a failed sync loses data */
	size_t		size;			/* to be transferred, at most */
} Verdict;

/* A sequence of random numbers that depends on the seed. */
typedef struct Dice
{
	uint64_t	stream;
	uint64_t	thrown;
} Dice;

/* How power is to be lost, and what that did. */
typedef struct Loss
{
	int			torn;			/* sectors of a unit, or 0: no write is torn */
	double		keep;			/* probability */
	uint64_t	changes;		/* of names that could be undone */
	uint64_t	undone;
	uint64_t	files;			/* with volatile data */
	uint64_t	units;			/* of data that could be undone */
	uint64_t	lost;
	int			error;			/* because of which it is not as it should */
} Loss;

typedef struct Settings
{
	_Atomic uint64_t seed;
	bool		strict;			/* names are synced by their directory only */
	bool		durable;		/* all is, at once */
	bool		uncached;
	uint64_t	cache;			/* bytes that may be volatile */
} Settings;

/* Streams of random numbers; those of rules are their numbers. */
enum
{
	STREAM_NAMES = 1 << 30,
	STREAM_DATA,
};

/* faultfs.c */
extern Settings settings;
extern int	root;				/* the directory below */
extern int	hidden;				/* HIDDEN in it */
extern struct fuse_session *session;
extern void power_hold(void);
extern bool power_enter(void);
extern void power_leave(void);
extern bool power_is_lost(void);
extern void power_lose(Loss *loss);
extern void power_sync(void);
extern bool parse_number(const char *text, uint64_t maximum, uint64_t *number);
extern bool parse_decimal(const char *text, double maximum, double *number);
extern int	remove_tree(int directory, const char *name);

/* requests.c */
extern const struct fuse_lowlevel_ops requests;

/* nodes.c */
extern Node *node_root(void);
extern int	nodes_start(void);
extern int	node_get(Node *directory, const char *name, Node **found,
					 struct stat *attributes);
extern void node_hold(Node *node);
extern void node_release(Node *node, uint64_t references);
extern void node_place(Node *node, Node *parent, const char *name);
extern bool node_path(Node *node, const char *name, char *path, size_t size);
extern int	node_attributes(Node *node, struct stat *attributes);
extern int	node_open(Node *node, bool writing);
extern void node_made(Node *node, int fd);
extern void node_close(Node *node);
extern void node_lock(Node *node);
extern void node_unlock(Node *node);
extern void node_close_content(Node *node);
extern void node_check_gone(Node *node);
extern int	charge_file(Node *node, off_t end);
extern void charge_truncated(Node *node);
extern void quota_set(uint64_t limit);
extern uint64_t quota_limit(void);
extern uint64_t quota_used(void);

/* names.c */
extern bool name_is_hidden(const Node *directory, const char *name);
extern void names_lock(void);
extern void names_unlock(void);
extern void names_added(Node *directory, const char *name, Node *node);
extern int	names_remove(Node *directory, const char *name, bool is_directory);
extern int	names_rename(Node *from, const char *from_name, Node *to,
						 const char *to_name, unsigned int flags);
extern void names_truncated(Node *node, uint64_t generation, off_t size);
extern uint64_t names_now(void);
extern void names_sync(Node *directory, uint64_t until);
extern void names_make_room(void);
extern void names_all_durable(void);
extern void names_undo(Loss *loss);
extern uint64_t names_volatile(uint64_t *bytes);

/* data.c */
extern int	data_start(void);
extern int	data_change(Node *node, off_t offset, off_t length, bool write);
extern int	data_change_size(Node *node, off_t size);
extern void data_truncated(Node *node, off_t size);
extern void data_settle(Node *node);
extern bool data_sync_begin(Node *node);
extern void data_sync_end(Node *node, int error, bool lose_data);
extern void data_durable(Node *node);
extern void data_truncation_durable(Node *node, uint64_t generation, off_t size);
extern void data_make_room(void);
extern void data_all_durable(void);
extern void data_undo(Loss *loss);
extern uint64_t data_volatile(uint64_t *files);

/* rules.c */
extern uint64_t dice_throw(Dice *dice, uint64_t sides);
extern bool dice_chance(Dice *dice, double probability);
extern Verdict judge(Operation operation, Node *node, size_t size,
					 bool shortable);
extern Verdict judge_sync(Node *node, bool datasync);
extern Verdict judge_name(Operation operation, Node *directory,
						  const char *name, Node *other,
						  const char *other_name);
extern bool serve_delay(const Verdict *verdict);
extern const char *rule_add(char **words, int count, int *id);
extern bool rule_remove(int id);
extern void rules_clear(void);
extern void rules_restart(void);
extern void rules_describe(FILE *answer);
extern void rules_count(FILE *answer);

/* control.c */
extern int	control_open(void);
extern int	control_start(void);
extern void control_stop(void);

#endif							/* FAULTFS_H */

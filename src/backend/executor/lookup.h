/*-------------------------------------------------------------------------
 *
 * lookup.h
 *	  Lookups ahead of need.  Private to src/backend/executor.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AIO_LOOKUP_H
#define AIO_LOOKUP_H

#include "access/genam.h"
#include "aio/index_am.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "storage/bufmgr.h"

/* ------------------------------------------------------------------------
 * Window: how far ahead
 * ------------------------------------------------------------------------
 */

/*
 * The distance is that between what is needed now and the last that is looked
 * up.  It is 0 as long as nobody has to wait, doubles while lookups ahead begin
 * reads, and halves when they find everything in memory.
 *
 * What is known to be wanted may be looked up.  What is beyond that may turn
 * out to be in vain, and is limited by what has been so far.  Its user counts
 * pages, over all scans of a node.
 */
typedef struct AioLookupWindow
{
	int			distance;
	int			distance_max;	/* most that may be looked up ahead */
	uint64		wanted;			/* so many are, after the one needed now */
	uint64		needed;			/* pages, so far */
	uint64		in_vain;		/* pages that were looked up and not needed */
	int			looked;			/* lookups ahead since it was adjusted last, */
	bool		has_read;		/* and did any of them begin a read? */
} AioLookupWindow;

extern void AioWindowOpen(AioLookupWindow *window, int distance_max,
						  uint64 wanted);
extern int	AioWindowDistance(const AioLookupWindow *window);
extern void AioWindowAdjust(AioLookupWindow *window, bool has_read);
extern void AioWindowLooked(AioLookupWindow *window, int nlookups,
							bool has_read);

/* ------------------------------------------------------------------------
 * Probe: read what a lookup will read
 * ------------------------------------------------------------------------
 */

/*
 * An index that is looked up, perhaps once for each outer row of a loop; or a
 * table that is looked up by TIDs, and no index.
 */
typedef struct AioLookupTarget
{
	PlanState  *node;
	Relation	index;
	Relation	heap;
	const AioIndexAmOps *ops;
	ScanKey		keys;			/* those that do not change are set */
	int			nkeys;
	IndexRuntimeKeyInfo *runtime_keys;
	int			nruntime_keys;
	ScanDirection direction;
	bool		index_only;
	bool		leaf_only;		/* somebody else reads the table's pages */
	bool		first_only;		/* one match is enough */
	ExprState  *predicate;		/* of the index, if it is tested before */
	bool		may_probe;		/* AioMayProbe() has said so */
	bool		may_fail;		/* evaluating that, or keys, may raise, */
	bool		has_failed;		/* and it has */

	/* of probes */
	IndexScanDesc idle_scan;	/* that the next one may use, while some run */
	uint32		steps_in_vain;	/* second steps of probes, one after the
								 * other, that have found nothing to read */

	/* rows of the table are looked up by these TIDs */
	List	   *tids;			/* of ExprState; NIL: there is an index */
	BlockNumber nblocks;		/* the table is known to have so many */

	/* partitions: it is this child of an Append that prunes at run time */
	AppendState *append;
	int			child;

	/* keys that this has seen are not looked up again; hashes of such keys */
	MemoizeState *memoize;
	uint32	   *seen;
} AioLookupTarget;

extern int	AioLookupLimit(Relation heap);
extern const AioIndexAmOps *AioLookupAm(Relation index, Relation heap);
extern bool AioMayProbe(AioLookupTarget *target);
extern Relation AioOpenIfFree(Oid relid);
extern List *AioAddProbe(List *probes, AioLookupTarget *target, ScanKey keys,
						 int ahead, bool *begun);
extern bool AioRunProbes(List *probes);
extern bool AioBeginRead(Relation rel, BlockNumber block);

/* ------------------------------------------------------------------------
 * Loops and scans of a statement
 * ------------------------------------------------------------------------
 */

/* waits for pages of a loop's targets after which it looks ahead */
#define AIO_WAITS_BEFORE_OPENING	2

/*
 * What may be put before a node's ExecProcNode, the first one next to it.  A
 * node can be all of them.
 */
typedef enum AioLookupLayer
{
	AIO_LOOKUP_SCAN,
	AIO_LOOKUP_PROJECTION,		/* a loop, over the rows that a node projects */
	AIO_LOOKUP_OUTER,			/* a loop, over the outer rows of a join */
	AIO_LOOKUP_VALUES,			/* a loop, over rows whose values are wanted */
} AioLookupLayer;

#define AIO_LOOKUP_LAYERS	4

typedef TupleTableSlot *(*AioLookupNext) (void *arg);

/* A node before whose ExecProcNode something is put. */
typedef struct AioLookupNode
{
	PlanState  *node;
	ExecProcNodeMtd real;		/* upstream's */
	bool		replaced;		/* by ours */
	AioLookupNext next[AIO_LOOKUP_LAYERS];
	void	   *arg[AIO_LOOKUP_LAYERS];
} AioLookupNode;

/* Values that are stored out of line (lookup_toast.c) */
typedef struct AioToast AioToast;

/* A parameter that a loop sets for each outer row. */
typedef struct AioLoopParam
{
	int			paramno;
	AttrNumber	attno;			/* it is that column, */
	Expr	   *arg;			/* or the value of this, in terms of the node */
	ExprState  *value;			/* likewise, in terms of a row that is ahead */
} AioLoopParam;

/* One of the lists of conditions that a node tests. */
typedef struct AioLookupQuals
{
	List	   *early;			/* tested when a row is produced */
	List	   *later;			/* tested when it is returned */
	ExprState **place;			/* where the node has them */

	/* compiled */
	ExprState  *original;
	ExprState  *producing;
	ExprState  *returning;
} AioLookupQuals;

#define AIO_LOOKUP_QUALS	2

/*
 * A target list, or conditions, that are evaluated later than the node produces
 * its rows.
 */
typedef struct AioLookupProjection
{
	List	   *subplans;		/* that are looked up ahead, or */
	List	   *values;			/* Vars whose values are */
	List	   *params;			/* AioLoopParams that are set for these */
	List	   *early_quals;	/* all conditions that are tested at once */
	int			nquals;			/* 0 if no condition is tested later */
	AioLookupQuals quals[AIO_LOOKUP_QUALS];

	/* compiled */
	TupleDesc	desc;			/* of rows ahead; NULL: nothing is compiled
								 * yet */
	List	   *vars;			/* their columns, in terms of the node */
	ExprContext *econtext;
	ProjectionInfo *original;	/* NULL, like the others: it does not project */
	ProjectionInfo *rows;		/* has the node produce rows ahead */
	ProjectionInfo *output;		/* makes what the node returns of such a row */
} AioLookupProjection;

/* INSERT and MERGE (lookup_insert.c) */
typedef struct AioLookupInsert AioLookupInsert;

/* How many more rows of a node are going to be asked for (rows_wanted.c) */
typedef struct AioRowsPath AioRowsPath;

#define AIO_ALL_ROWS	PG_UINT64_MAX

/*
 * A loop that looks up indexes for each outer row: a nested loop, a node in
 * whose target list or conditions there are correlated subqueries, or one that
 * inserts rows that may conflict with others; or rows for which values are
 * looked up in a TOAST table.
 */
typedef struct AioLookupLoop
{
	PlanState  *node;
	PlanState  *outer;			/* gives the rows: outer node of a join or of
								 * an insert, or node */
	AioLookupLayer layer;		/* in front of it */
	List	   *params;			/* of AioLoopParam */
	List	   *targets;		/* of AioLookupTarget; NIL: ask 'insert' or
								 * 'toast' */
	int			nsteps;			/* targets of a row that two steps are made
								 * for */
	AioLookupProjection *projection;	/* if its rows are evaluated later */
	AioLookupInsert *insert;
	AioToast   *toast;
	bool		is_top;			/* its rows go to whoever runs the statement */
	struct AioLookups *lookups;
	AioRowsPath *path;			/* to 'outer' */
	int			waits;			/* for pages of the targets, while closed */
	int			waits_wanted;	/* to open */
	bool		closed_for_good;	/* its outer rows cannot be had ahead */
	bool		undisturbed;	/* they can if nobody is between them */

	/* while rows are taken ahead */
	bool		open;
	AioLookupWindow window;
	MemoryContext context;		/* what follows */
	MemoryContext row_context;	/* slots */
	Size		memory;			/* of that, as the statement counts it */
	MemoryContext probe_context;	/* keys, until all probes have ended */
	ExprContext *econtext;
	bool		watches_rescan;
	bool		taking;			/* rows, at the moment */
	bool		has_read;		/* pages of TIDs, when rows were taken last */
	uint32		rows_without_values;	/* taken one after the other */
	TupleDesc	desc;			/* of rows */
	TupleTableSlot **slots;
	int			nslots;
	uint32		nfilled;		/* rows in slots[], counted from the first */
	uint32		ntaken;
	uint32		nprobed;		/* rows ahead whose probes have made all steps */
	bool	   *begun;			/* of each slot, for nsteps targets:
								 * AioAddProbe() */
	bool		at_end;			/* no further outer row is asked for */
	ErrorData  *error;			/* that is raised when all have been taken;
								 * the nodes below are not executed any more */
} AioLookupLoop;

/* TIDs that a scan looks at at a time */
#define AIO_TIDS_MAX	256

/* A scan that reads heap pages in the order of an index, or has array keys. */
typedef struct AioLookupScan
{
	AioLookupTarget target;
	AioLookupWindow window;
	AioRowsPath *path;			/* NULL: no plan makes it, or all are wanted */
	bool		watches_rescan;
	ItemPointerData last;		/* TID looked up last */
	int			nahead;			/* looked up, as many before that one and it */
	bool		pages[AIO_TIDS_MAX];	/* for which of them there is a page
										 * to be read */
	BlockNumber next;			/* page of the index, looked up too */
	bool		goes_on;		/* looks further ahead as rows are returned */
	int			rows;			/* returned since the scan looked ahead last */

	/* array keys */
	bool		searches;		/* has some, and may be probed for them */
	bool		matches_once;	/* each search finds at most one row */
	int			search;			/* that was probed last */
	int			search_probed;	/* the last one whose probe has made all steps */
	bool	   *begun;			/* of some searches: AioAddProbe() */
	MemoryContext context;		/* keys */
} AioLookupScan;

/* A scan with an array of TIDs. */
typedef struct AioLookupTids
{
	TidScanState *node;
	AioLookupWindow window;
	AioRowsPath *path;
	bool		watches_rescan;
	int			position;		/* when it was looked up last, */
	int			looked;			/* as far as the TID before this one */
	bool		goes_on;		/* looks further ahead as rows are returned */
} AioLookupTids;

/* What a statement looks up. */
typedef struct AioLookups
{
	struct AioLookups *next;
	EState	   *estate;
	MemoryContext context;
	List	   *loops;			/* of AioLookupLoop */
	List	   *scans;			/* of AioLookupScan */
	List	   *tid_scans;		/* of AioLookupTids */
	struct layered_hash *nodes; /* that have had a layer (lookup_statement.c) */
	List	   *subplans;		/* PlanStates that have been searched */
	PlanState  *top;
	bool		all_wanted;		/* of its rows, whoever runs it */
	Size		memory;			/* that rows ahead use in all loops */
	List	   *marked;			/* PlanStates that a merge join has go back */
	List	   *stopped;		/* scans of which a join, or EXISTS, takes the
								 * first row that matches */
} AioLookups;

/* lookup_plan.c */
extern AioLookupLoop *AioNewLoop(PlanState *node, PlanState *outer,
								 AioLookupLayer layer);
extern void AioFindLookups(AioLookups *lookups, const QueryDesc *query);

/* lookup_statement.c */
extern AioLookups *AioNoteStatement(EState *estate);
extern AioLookups *AioNotedStatement(const EState *estate);
extern AioLookups *AioLookupsOf(const QueryDesc *query);
extern void AioLookupAttach(PlanState *node, AioLookupLayer layer,
							AioLookupNext next, void *arg);
extern void AioLookupDetach(PlanState *node, AioLookupLayer layer);
extern TupleTableSlot *AioLookupBelow(PlanState *node, AioLookupLayer layer);

/* lookup_projection.c */
extern bool AioCompileAgain(void (*compile) (void *), void *arg);
extern AioLookupProjection *AioFindProjectedLookups(PlanState *node);
extern List *AioProjectedColumns(const AioLookupProjection *projection);
extern void AioCompileProjection(PlanState *node,
								 AioLookupProjection *projection);
extern void AioProjectLater(PlanState *node, AioLookupProjection *projection,
							bool later);
extern TupleTableSlot *AioProject(PlanState *node,
								  AioLookupProjection *projection,
								  TupleTableSlot *row);

extern AioLookupProjection *AioFindProjection(PlanState *node);
extern ProjectionInfo *AioProjectAhead(AioLookupProjection *projection,
									   List *targetlist);

/* lookup_insert.c */
extern AioLookupInsert *AioFindInsertLookups(ModifyTableState *mtstate,
											 PlanState *root, bool *later);
extern void AioCompileInsert(AioLookupInsert *insert, PlanState *node,
							 AioLookupProjection *projection);
extern void AioCompileMerge(AioLookupInsert *insert, ExprContext *econtext);
extern TupleTableSlot *AioInsertColumns(AioLookupInsert *insert,
										TupleTableSlot *row);
extern List *AioInsertTargets(AioLookupInsert *insert, TupleTableSlot *columns);
extern Relation AioInsertReads(const AioLookupInsert *insert, Relation rel);

/* lookup_toast.c */
extern List *AioToastColumns(TupleDesc desc);
extern AioToast *AioMakeToast(List *columns);
extern void AioSetToastColumns(AioToast *toast, List *columns);
extern int	AioToastSize(const AioToast *toast);
extern Relation AioToastReads(const PlanState *node, Relation rel);
extern List *AioAddValues(List *probes, AioToast *toast, TupleTableSlot *row,
						  int ahead, bool *begun, bool again, bool near);
extern void AioCloseToast(AioToast *toast);

/* rows_wanted.c */
extern AioRowsPath *AioFindRowsPath(const AioLookups *lookups, PlanState *node);
extern uint64 AioRowsOfPath(const AioRowsPath *path, AioLookupLayer layer);

/* lookup_loop.c */
extern Relation AioLoopReads(const AioLookupLoop *loop, Relation rel);
extern void AioOpenLoop(AioLookups *lookups, AioLookupLoop *loop,
						int distance_max);

/* lookup_tid.c */
extern AioLookupTarget *AioFindTids(TidScanState *node);
extern bool AioReadTids(AioLookupTarget *target, ExprContext *econtext,
						int ahead);
extern bool AioTidsMayBeRead(Relation heap);

/* lookup_tid_scan.c */
extern void AioGoOnLookingUpTids(AioLookupTids *lookup);
extern void AioLookUpTids(AioLookupTids *lookup, BlockNumber block);

/* lookup_search.c */
extern int	AioProbeSearches(AioLookupScan *lookup, IndexScanDesc scan,
							 ScanDirection direction, bool *has_read);

/* lookup_scan.c */
extern void AioLookUpScan(AioLookupScan *scan, Relation rel,
						  BlockNumber block);
extern void AioGoOnLookingUp(AioLookupScan *scan);

#endif							/* AIO_LOOKUP_H */

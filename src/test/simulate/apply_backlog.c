/*-------------------------------------------------------------------------
 *
 * apply_backlog.c
 *	  Simulates what a subscription's worker keeps of the changes that it
 *	  applies: the made-up statement that has entries waiting and indexes
 *	  locked.
 *
 * A seed stands for some tables with indexes, of which rows run code at other
 * times, or are not collected for; for transactions of changes that come from a
 * publisher, who may be slow; for locks that others have, and want; and for
 * errors, some of which are caught.
 *
 * The code that is simulated is the server's apply.c.  Invariants: an entry
 * waits only while its index is locked, and none does when the transaction
 * commits; nobody waits for a lock, nor runs code that may take any time, with
 * an index locked that upstream has not locked then; who waits for one of these
 * gets it soon; and nothing of a statement is used that has been freed.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/apply.c"

#define SIM_TABLES_MAX	60
#define FIRST_OID		16384

/* bounds of what is generated, lower ones for a smaller case */
static int	most_tables = SIM_TABLES_MAX;
static int	most_transactions = 4;
static int	most_messages = 150;

int			aio_debug_rows_before_batch;
int			aio_index_batch_memory;
int			max_locks_per_xact;
int			max_prepared_xacts;
int			MaxBackends;
uint64		sim_now;
MemoryContext TopTransactionContext;
ResourceOwner TopTransactionResourceOwner;

static RelationData tables[SIM_TABLES_MAX];
static RelationData indexes[SIM_TABLES_MAX][INDEXES_MAX];
static int	ntables;
static XactCallback callback;
static bool in_transaction;
static int	nest_level;
static bool identity_is_full;
static EState *estate_now;		/* that exists, or NULL */
static bool draining;
static bool looking_up;			/* what the file asks of catalogs for a row */
static bool under_way;			/* a row has been given its backlog */
static bool lock_is_free;		/* that is being asked for */
static int	chance_of_errors;
static int	chance_of_conflicts;
static int	chance_of_code;
static int	chance_of_codes;	/* that rows of a table run any */
static int	chance_not_taken;
static int	chance_of_ends;		/* that something ends the statement */
static int	messages_wanted;	/* since somebody has waited for an index */

static void
maybe_raise(void)
{
	if (SimChance(&sim_world, chance_of_errors))
		SimRaise(SIM_ERROR_OTHER, SIM_NOBODY);
}

/* ------------------------------------------------------------------------
 * What must hold
 * ------------------------------------------------------------------------
 */

/*
 * The statement has no index locked but those of this table, or those in use.
 */
static void
check_locks(const RelationData *table, bool or_used, const char *what)
{
	for (int i = 0; i < ntables; i++)
	{
		for (int j = 0; j < tables[i].nindexes; j++)
		{
			const RelationData *index = tables[i].indexes[j];

			if (index->opened > 0 && &tables[i] != table && !(or_used && index->used > 0))
				SimFail(__FILE__, __LINE__, what);
		}
	}
}

static void
check_nothing_waits(void)
{
	check_locks(NULL, false, "an index is locked when the transaction ends");
	for (int i = 0; i < ntables; i++)
	{
		SIM_CHECK(tables[i].opened == 0, "a table is open when the transaction ends");
		for (int j = 0; j < tables[i].nindexes; j++)
			SIM_CHECK(tables[i].indexes[j]->waiting == 0, "an entry waits when the transaction ends");
	}
}

/* ------------------------------------------------------------------------
 * What the file needs of a server
 * ------------------------------------------------------------------------
 */

/* The worker gets a lock, and waits for whoever has it. */
static void
lock(LockTagType type, Oid oid, LOCKMODE mode)
{
	LOCKTAG		tag = {.locktag_type = type,.oid = oid};

	lock_is_free = !SimChance(&sim_world, chance_of_conflicts);
	AioEndApplyBeforeLock(&tag, mode, false);
	if (lock_is_free || draining || looking_up || LockHeldByMe(&tag, mode, false) ||
		!AioMayDrainBeforeLock(&tag) || type == LOCKTAG_RELATION_EXTEND || type == LOCKTAG_PAGE)
		return;
	SimNote("waits for a lock of %u", oid);
	check_locks(NULL, true, "a lock is waited for with an index locked");
	sim_now += SimUpTo(&sim_world, 100000);
	maybe_raise();
}

static Relation
relation_of(Oid oid)
{
	for (int i = 0; i < ntables; i++)
	{
		if (tables[i].oid == oid)
			return &tables[i];
		for (int j = 0; j < tables[i].nindexes; j++)
		{
			if (tables[i].indexes[j]->oid == oid)
				return tables[i].indexes[j];
		}
	}
	return NULL;
}

bool
LockHeldByMe(const LOCKTAG *tag, LOCKMODE mode, bool or_stronger)
{
	const RelationData *rel = relation_of(tag->oid);

	return tag->locktag_type == LOCKTAG_RELATION && rel != NULL && mode <= RowExclusiveLock &&
		rel->opened + rel->used > 0;
}

/* of a catalog, in the middle of a look-up */
bool
AioMayDrainBeforeLock(const LOCKTAG *tag)
{
	return tag->oid >= FIRST_OID;
}

bool
AioLockIsToBeHad(const LOCKTAG *tag, LOCKMODE mode, bool session)
{
	return lock_is_free;
}

bool
AioSomebodyWaitsFor(Relation rel)
{
	return rel->wanted;
}

Relation
table_open(Oid relid, LOCKMODE mode)
{
	Relation	rel = relation_of(relid);

	SIM_CHECK(mode == NoLock && rel->used > 0, "a table is opened that is not locked");
	SIM_CHECK(CurrentResourceOwner == TopTransactionResourceOwner, "what is open is not the transaction's");
	rel->opened++;
	return rel;
}

void
table_close(Relation rel, LOCKMODE mode)
{
	SIM_CHECK(rel->opened == 1 && mode == NoLock, "a table is closed that is not open");
	SIM_CHECK(CurrentResourceOwner == TopTransactionResourceOwner, "what is closed is not the transaction's");
	rel->opened--;
}

void
index_close(Relation index, LOCKMODE mode)
{
	SIM_CHECK(index->opened == 1 && mode == RowExclusiveLock, "an index is closed that is not open");
	SIM_CHECK(index->waiting == 0, "an index is closed for which entries wait");
	index->opened--;
	if (index->opened + index->used == 0)
		index->wanted = false;
}

void
InitResultRelInfo(ResultRelInfo *rri, Relation rel, int position, ResultRelInfo *root, int options)
{
	rri->ri_RelationDesc = rel;
}

void
ExecOpenIndices(ResultRelInfo *rri, bool speculative)
{
	Relation	table = rri->ri_RelationDesc;

	for (int i = 0; i < table->nindexes; i++)
	{
		Relation	index = table->indexes[i];

		SIM_CHECK(index->opened == 0, "an index is opened twice");
		SIM_CHECK(index->used > 0, "an index is locked that the row has not locked");
		index->opened++;
		rri->ri_IndexRelationDescs[rri->ri_NumIndices++] = index;
	}
}

Oid
GetRelationIdentityOrPK(Relation rel)
{
	return rel->has_identity ? rel->indexes[0]->oid : InvalidOid;
}

bool
AioAppliedIdentityIsFull(void)
{
	return identity_is_full;
}

/* Looks up catalogs. */
AioRowCode
AioApplyRowCode(Relation rel)
{
	lock(LOCKTAG_OBJECT, 2 * FIRST_OID, 1);
	return rel->row_code;
}

EState *
CreateExecutorState(void)
{
	MemoryContext context = SimContextMake();
	EState	   *estate = MemoryContextAllocZero(context, sizeof(EState));

	SIM_CHECK(estate_now == NULL, "there are two statements");
	estate->es_query_cxt = context;
	estate_now = estate;
	return estate;
}

void
FreeExecutorState(EState *estate)
{
	SIM_CHECK(estate == estate_now, "another statement is freed");
	SIM_CHECK(!under_way, "a statement is freed whose backlog somebody has");
	check_locks(NULL, false, "a statement is freed that has indexes locked");
	estate_now = NULL;
	SimContextDelete(estate->es_query_cxt);
}

static void
insert_entries(ResultRelInfo *rri)
{
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		Relation	index = rri->ri_IndexRelationDescs[i];

		if (index == NULL || index->waiting == 0)
			continue;
		SIM_CHECK(index->opened > 0, "an entry waits for an index that is not locked");
		lock(LOCKTAG_RELATION_EXTEND, index->oid, 7);
		maybe_raise();
		index->waiting = 0;
	}
}

void
AioDrainStatement(EState *estate)
{
	SIM_CHECK(estate == estate_now, "a statement is drained that is not there");
	estate->backlog.draining = draining = true;
	for (AioTableBacklog *table = estate->tables; table != NULL; table = table->next)
		insert_entries(table->rri);
	estate->backlog.draining = draining = false;
}

void
AioDrainBeforeClosing(ResultRelInfo *rri)
{
	SIM_CHECK(estate_now != NULL, "a statement is drained that is not there");
	draining = true;
	insert_entries(rri);
	draining = false;
}

void
AioSumUpTable(AioTableBacklog *backlog)
{
}

AioStatementBacklog *
AioFindStatement(const EState *estate)
{
	SIM_CHECK(estate == estate_now, "a statement is asked for that is not there");
	return estate->tables == NULL ? NULL : &estate_now->backlog;
}

bool
AioPageIsInTheWay(const AioStatementBacklog *backlog)
{
	return false;
}

AioTableBacklog *
AioGetTableBacklogs(const EState *estate)
{
	return estate->tables;
}

AioTableBacklog *
AioGetTableBacklog(ResultRelInfo *rri, EState *estate, CommandId cid, void *cstate)
{
	AioTableBacklog *table;

	SIM_CHECK(estate == estate_now, "a backlog is asked for that is not there");
	lock(LOCKTAG_OBJECT, 2 * FIRST_OID, 1);
	if (!rri->ri_RelationDesc->collects)
		return NULL;
	for (table = estate->tables; table != NULL; table = table->next)
	{
		if (table->rri == rri)
			return table;
	}
	table = MemoryContextAllocZero(estate->es_query_cxt, sizeof(AioTableBacklog));
	table->rri = rri;
	table->nindexes = rri->ri_NumIndices;
	for (int i = 0; i < table->nindexes; i++)
		table->indexes[i].collects = true;
	table->next = estate->tables;
	estate->tables = table;
	return table;
}

bool
AioBacklogTakes(AioTableBacklog *backlog, CommandId cid, int rows)
{
	bool		any = false;

	lock(LOCKTAG_OBJECT, 2 * FIRST_OID, 1);
	for (int i = 0; i < backlog->nindexes; i++)
		any |= backlog->indexes[i].collects;
	return any && !SimChance(&sim_world, chance_not_taken);
}

void
RegisterXactCallback(XactCallback function, void *arg)
{
	callback = function;
}

bool
IsTransactionState(void)
{
	return in_transaction;
}

int
GetCurrentTransactionNestLevel(void)
{
	return nest_level;
}

bool
IsLogicalWorker(void)
{
	return true;
}

/* Tables by Oid, of which each has the Oid first. */
struct HTAB
{
	MemoryContext context;
	Size		size;
	int			nentries;
	void	   *entries[SIM_TABLES_MAX];
};

HTAB *
hash_create(const char *name, long nelem, const HASHCTL *ctl, int flags)
{
	HTAB	   *table = MemoryContextAllocZero(ctl->hcxt, sizeof(HTAB));

	table->context = ctl->hcxt;
	table->size = ctl->entrysize;
	return table;
}

void *
hash_search(HTAB *table, const void *key, HASHACTION action, bool *found)
{
	for (int i = 0; i < table->nentries; i++)
	{
		if (memcmp(table->entries[i], key, sizeof(Oid)) == 0)
			return table->entries[i];
	}
	if (action == HASH_FIND)
		return NULL;
	SIM_CHECK(table->nentries < SIM_TABLES_MAX, "there are more entries than tables");
	table->entries[table->nentries] = MemoryContextAllocZero(table->context, table->size);
	memcpy(table->entries[table->nentries], key, sizeof(Oid));
	return table->entries[table->nentries++];
}

void
hash_seq_init(HASH_SEQ_STATUS *status, HTAB *table)
{
	status->table = table;
	status->next = 0;
}

void *
hash_seq_search(HASH_SEQ_STATUS *status)
{
	return status->next < status->table->nentries ? status->table->entries[status->next++] : NULL;
}

/* ------------------------------------------------------------------------
 * The worker
 * ------------------------------------------------------------------------
 */

/* A function of users, in the middle of a row or between two. */
static void
run_code(const RelationData *table)
{
	sim_now += SimUpTo(&sim_world, 100000);
	if (SimChance(&sim_world, 300))
		lock(LOCKTAG_RELATION, FIRST_OID + SimUpTo(&sim_world, 2 * FIRST_OID), SimChance(&sim_world, 500) ? 1 : AccessExclusiveLock);

	/* DDL, or a drain that somebody has asked for */
	if (SimChance(&sim_world, 200) && aio_rows_applied > 0)
	{
		AioEndApply();
		check_locks(NULL, false, "an index is locked after the statement has ended");
	}
	if (under_way && SimChance(&sim_world, 300))
	{
		ResultRelInfo rri = {.ri_RelationDesc = &tables[0]};

		SIM_CHECK(AioApplyBacklog(&rri, 1000) == NULL, "a row in the middle of another one has a backlog");
	}
	maybe_raise();
}

static void
call_trigger(Relation table, bool before)
{
	TriggerData trigger = {.tg_event = before,.tg_relation = table};

	if (aio_rows_applied > 0)
		AioEndApplyForTrigger(&trigger);
	check_locks(before ? table : NULL, false, "a trigger runs with an index locked");
	run_code(table);
}

/* The entries of a row, which is in the heap. */
static void
insert_row(Relation table, CommandId cid)
{
	ResultRelInfo rri = {.ri_RelationDesc = table,.ri_NumIndices = table->nindexes};
	AioTableBacklog *backlog;

	memcpy(rri.ri_IndexRelationDescs, table->indexes, sizeof(table->indexes));
	looking_up = true;
	backlog = AioApplyBacklog(&rri, cid);
	looking_up = false;
	under_way = backlog != NULL;
	if (backlog != NULL)
	{
		SIM_CHECK(nest_level == 1, "entries are collected in a subtransaction");
		SIM_CHECK(table->row_code != AIO_ROW_RUNS_EARLY, "entries are collected of what runs code early");
		SIM_CHECK(!identity_is_full || table->has_identity, "entries are collected for an index that is searched");
	}
	for (int i = 0; i < rri.ri_NumIndices; i++)
	{
		Relation	index = rri.ri_IndexRelationDescs[i];

		if (table->row_code != AIO_ROW_RUNS_NOTHING && SimChance(&sim_world, chance_of_code))
			run_code(table);
		maybe_raise();
		if (backlog != NULL && backlog->indexes[i].collects)
		{
			SIM_CHECK(backlog->nindexes == table->nindexes, "a backlog is of other indexes");
			SIM_CHECK(index->opened > 0, "an entry is collected for an index that is not locked");
			index->waiting++;
		}
	}
	under_way = false;
	if (backlog != NULL)
		AioAppliedRow();
}

static void
apply_row(Relation table, CommandId cid)
{
	lock(LOCKTAG_RELATION, table->oid, RowExclusiveLock);
	table->used++;
	if (aio_rows_applied > 0)
		AioEndApplyBeforeRow(table);
	if (table->row_code == AIO_ROW_RUNS_EARLY)
	{
		check_locks(NULL, false, "code runs early with an index locked");
		run_code(table);
	}
	for (int i = 0; i < table->nindexes; i++)
	{
		lock(LOCKTAG_RELATION, table->indexes[i]->oid, RowExclusiveLock);
		table->indexes[i]->used++;
	}
	if (table->row_code == AIO_ROW_RUNS_LATE)
	{
		check_locks(table, false, "code runs late with an index of another table locked");
		if (SimChance(&sim_world, chance_of_code))
			run_code(table);
	}
	if (SimChance(&sim_world, chance_of_code))
		call_trigger(table, true);
	insert_row(table, cid);
	if (SimChance(&sim_world, chance_of_code / 2))
		call_trigger(table, false);
}

/* The row has been worked on, or has failed. */
static void
release_row(void)
{
	for (int i = 0; i < ntables; i++)
	{
		tables[i].used = 0;
		for (int j = 0; j < tables[i].nindexes; j++)
			tables[i].indexes[j]->used = 0;
	}
}

static void
apply_message(Relation table, CommandId cid)
{
	static const char actions[] = "IIIIUUDRY";
	char		action = SimChance(&sim_world, chance_of_ends) ? 'O' :
		actions[SimUpTo(&sim_world, lengthof(actions) - 2)];

	if (aio_rows_applied > 0)
		AioEndApplyFor(action);
	SimNote("message %c of %u, %d open", action, table->oid, statement == NULL ? -1 : statement->nopen);
	if (action == 'O')
		check_locks(NULL, false, "an index is locked at a message that is no change");
	if (strchr("IUD", action) != NULL)
		apply_row(table, cid);
}

/* Others may wait for an index, but not for long. */
static void
others(void)
{
	bool		any = false;

	for (int i = 0; i < ntables; i++)
	{
		for (int j = 0; j < tables[i].nindexes; j++)
		{
			RelationData *index = tables[i].indexes[j];

			if (index->opened == 0)
				index->wanted = false;
			else if (SimChance(&sim_world, chance_of_conflicts / 10))
				index->wanted = true;
			any |= index->wanted;
		}
	}
	messages_wanted = any ? messages_wanted + 1 : 0;
	SIM_CHECK(messages_wanted <= 2 * MESSAGES_TO_LOOK, "somebody waits for an index for long");
}

static void
transaction_body(void)
{
	CommandId	cid = 0;

	for (int i = SimUpTo(&sim_world, most_messages - 1); i >= 0; i--)
	{
		Relation	table = &tables[SimChance(&sim_world, 500) ? cid % ntables : SimUpTo(&sim_world, ntables - 1)];
		ResourceOwner owner = CurrentResourceOwner;
		sigjmp_buf	handler;
		sigjmp_buf *volatile outer = PG_exception_stack;

		sim_now += SimUpTo(&sim_world, 1000);
		others();
		nest_level = SimChance(&sim_world, 50) ? 2 : 1;

		/* a new index, of which somebody has committed the creation */
		if (table->nindexes < INDEXES_MAX && SimChance(&sim_world, 5))
		{
			table->indexes[table->nindexes] = &indexes[table - tables][table->nindexes];
			table->nindexes++;
		}
		if (SimChance(&sim_world, chance_of_ends))
		{
			/* the publisher is slow: receive_ahead.c */
			AioEndApply();
			check_locks(NULL, false, "the publisher is waited for with an index locked");
		}

		/* an error may be caught, as in a subtransaction of a function */
		CurrentResourceOwner = SimOwnerMake();
		if (sigsetjmp(handler, 0) == 0)
		{
			if (SimChance(&sim_world, 300))
				PG_exception_stack = &handler;
			apply_message(table, cid);
			PG_exception_stack = outer;
		}
		else
		{
			PG_exception_stack = outer;
			FlushErrorState();
			if (estate_now != NULL)
				estate_now->backlog.draining = false;
			draining = under_way = looking_up = false;
			SimNote("an error is caught");
		}
		release_row();
		SimOwnerRelease(CurrentResourceOwner, true);
		CurrentResourceOwner = owner;
		cid++;
	}
}

static void
transaction(void)
{
	sigjmp_buf	handler;
	sigjmp_buf *volatile outer = PG_exception_stack;
	MemoryContext context = SimContextMake();

	TopTransactionContext = CurrentMemoryContext = context;
	TopTransactionResourceOwner = CurrentResourceOwner = SimOwnerMake();
	in_transaction = true;
	messages_wanted = 0;
	if (sigsetjmp(handler, 0) == 0)
	{
		PG_exception_stack = &handler;
		transaction_body();
		nest_level = 1;
		if (callback != NULL)
			callback(SimChance(&sim_world, 500) ? XACT_EVENT_PRE_COMMIT : XACT_EVENT_PRE_PREPARE, NULL);
		check_nothing_waits();
		SIM_CHECK(aio_rows_applied == 0 || callback == NULL, "rows of the transaction are remembered");
		PG_exception_stack = outer;
	}
	else
	{
		PG_exception_stack = outer;
		FlushErrorState();
		SimNote("the transaction aborts");
		draining = under_way = looking_up = false;
		if (callback != NULL)
			callback(XACT_EVENT_ABORT, NULL);
		for (int i = 0; i < ntables; i++)
		{
			tables[i].opened = 0;
			for (int j = 0; j < tables[i].nindexes; j++)
				tables[i].indexes[j]->opened = tables[i].indexes[j]->waiting = 0;
		}
		if (estate_now != NULL)
			SimContextDelete(estate_now->es_query_cxt);
		estate_now = NULL;
	}
	release_row();
	in_transaction = false;
	nest_level = 1;
	SimOwnerRelease(TopTransactionResourceOwner, true);
	CurrentResourceOwner = NULL;
	CurrentMemoryContext = TopMemoryContext;
	SimContextDelete(context);
}

static void
make_tables(bool many)
{
	ntables = many ? most_tables : 1 + SimUpTo(&sim_world, Min(most_tables, 5) - 1);
	for (int i = 0; i < ntables; i++)
	{
		RelationData *table = &tables[i];

		table->oid = FIRST_OID + i * (INDEXES_MAX + 1);
		table->row_code = !SimChance(&sim_world, chance_of_codes) ? AIO_ROW_RUNS_NOTHING : 1 + SimUpTo(&sim_world, 1);
		table->collects = many || !SimChance(&sim_world, 100);
		table->nindexes = many ? 1 : SimUpTo(&sim_world, INDEXES_MAX);
		table->has_identity = table->nindexes > 0 && !SimChance(&sim_world, 300);
		for (int j = 0; j < INDEXES_MAX; j++)
		{
			indexes[i][j].oid = table->oid + 1 + j;
			indexes[i][j].table = table;
			if (j < table->nindexes)
				table->indexes[j] = &indexes[i][j];
		}
	}
}

static void
simulate(uint64 seed)
{
	bool		many;

	pg_prng_seed(&sim_world, seed);
	pg_prng_uint64(&sim_world);
	many = SimChance(&sim_world, 20);
	memset(tables, 0, sizeof(tables));
	memset(indexes, 0, sizeof(indexes));
	sim_now = 1;
	nest_level = 1;
	aio_index_batch_memory = SimChance(&sim_world, 20) ? 0 : 1024;
	aio_debug_rows_before_batch = SimChance(&sim_world, 500) ? 0 : SimUpTo(&sim_world, 10);
	max_locks_per_xact = SimChance(&sim_world, 500) ? 64 : 10;
	MaxBackends = 1 + SimUpTo(&sim_world, 100);
	max_prepared_xacts = 0;
	identity_is_full = SimChance(&sim_world, 200);
	chance_of_errors = SimChance(&sim_world, 500) ? 0 : SimUpTo(&sim_world, SimChance(&sim_world, 200) ? 200 : 20);
	chance_of_conflicts = SimChance(&sim_world, 300) ? 0 : SimUpTo(&sim_world, 300);
	chance_of_code = SimChance(&sim_world, 300) ? 0 : SimUpTo(&sim_world, 300);
	chance_not_taken = SimChance(&sim_world, 700) ? 0 : SimUpTo(&sim_world, 200);
	chance_of_ends = SimChance(&sim_world, 500) ? 100 : SimUpTo(&sim_world, 10);
	chance_of_codes = SimChance(&sim_world, 500) ? 400 : 0;
	if (many)
		chance_of_codes = chance_of_conflicts = chance_of_errors = chance_of_ends = chance_not_taken = 0;
	make_tables(many);
	for (int i = SimUpTo(&sim_world, most_transactions - 1); i >= 0; i--)
		transaction();
}

int
main(int argc, char **argv)
{
	static const SimBound bounds[] = {
		{"tables", &most_tables},
		{"transactions", &most_transactions},
		{"messages", &most_messages},
	};

	return SimMain(argc, argv, bounds, lengthof(bounds), simulate);
}

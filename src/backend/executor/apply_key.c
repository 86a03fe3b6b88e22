/*-------------------------------------------------------------------------
 *
 * apply_key.c
 *	  By which key a change that logical replication will apply finds its row.
 *
 * A message says which columns of the publisher's row are to be searched for.
 * What the worker knows of the relation says which columns of ours these are,
 * and in which index it will search.  Values are converted by the types' input
 * functions, for some types whose functions have no side effects and do not
 * fail.  Whatever does not fit is not looked up: the worker will find out what
 * is wrong, when it is the message's turn.
 *
 * INVARIANT-66: reading a message ahead raises nothing for what is in it.
 *
 * Tests: src/test/aio/replication.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "apply_key.h"
#include "aio/apply_ahead.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/miscnodes.h"
#include "port/pg_bswap.h"
#include "replication/logicalproto.h"
#include "replication/logicalrelation.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* A column of a key. */
typedef struct KeyColumn
{
	AttrNumber	attnum;			/* of our table */
	FmgrInfo	input;
	Oid			ioparam;
	int32		typmod;
	int			typlen;
	Oid			receive;		/* InvalidOid: only text is understood */
	FmgrInfo	receive_info;
} KeyColumn;

/* How rows of a relation are searched for. */
typedef struct ApplyKey
{
	LogicalRepRelId remoteid;	/* hash key */
	Oid			relid;			/* our table */
	Oid			indexid;
	AioRiSearch *search;		/* NULL: not in a way that is known here */
	KeyColumn  *columns;
	TupleTableSlot *row;
	MemoryContext context;		/* what these point to */
	bool		incomplete;		/* something was locked */
	int			nlooked;		/* up since keys were forgotten */
} ApplyKey;

/* A part of a message that has not been read yet. */
typedef struct Cursor
{
	const char *data;
	int			len;
} Cursor;

/*
 * After so many rows of a relation, keys that have been looked up are looked up
 * again: their pages may have gone.
 */
#define ROWS_REMEMBERED		1024

/* what is known, in memory of the process, until it is out of date */
static MemoryContext key_context = NULL;
static HTAB *apply_keys = NULL;

/* what is known may be out of date */
static bool keys_stale = false;

/* a key is being found out, which is not among them yet; or that has failed */
static bool filling = false;

/* Does what is known of a key depend on this relation? */
static bool
depends_on(const ApplyKey *key, Oid relid)
{
	return relid == key->relid || relid == key->indexid ||
		(key->search != NULL && key->search->partitioned);
}

static void
relcache_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	ApplyKey   *key;

	if (keys_stale)
		return;
	if (!OidIsValid(relid) || filling || apply_keys == NULL)
	{
		keys_stale = true;
		return;
	}
	hash_seq_init(&status, apply_keys);
	while ((key = hash_seq_search(&status)) != NULL)
		keys_stale |= depends_on(key, relid);
}

static void
init_keys(void)
{
	HASHCTL		ctl;

	if (key_context == NULL)
	{
		key_context = AllocSetContextCreate(TopMemoryContext, "keys of changes",
											ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relcache_changed, (Datum) 0);
	}
	apply_keys = NULL;
	MemoryContextReset(key_context);
	keys_stale = false;
	filling = false;
	ctl.keysize = sizeof(LogicalRepRelId);
	ctl.entrysize = sizeof(ApplyKey);
	ctl.hcxt = key_context;
	apply_keys = hash_create("keys of changes", 16, &ctl,
							 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Types whose input functions have no side effects, and return errors. */
static bool
type_is_known(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case BPCHAROID:
		case BYTEAOID:
		case CHAROID:
		case CIDROID:
		case DATEOID:
		case FLOAT4OID:
		case FLOAT8OID:
		case INETOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case INTERVALOID:
		case MACADDR8OID:
		case MACADDROID:
		case NAMEOID:
		case NUMERICOID:
		case OIDOID:
		case TEXTOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case TIMETZOID:
		case UUIDOID:
		case VARCHAROID:
			return true;
		default:
			return false;
	}
}

/* Functions that take any value which is as long as the type. */
static bool
receive_is_known(Oid function)
{
	switch (function)
	{
		case F_INT2RECV:
		case F_INT4RECV:
		case F_INT8RECV:
		case F_OIDRECV:
		case F_UUID_RECV:
			return true;
		default:
			return false;
	}
}

/* Columns of the index in which the worker searches. */
static Bitmapset *
columns_of_index(Oid indexid, bool *incomplete)
{
	Relation	index = AioOpenIfFree(indexid);
	Bitmapset  *result = NULL;

	*incomplete = index == NULL;
	if (index == NULL)
		return NULL;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (index->rd_index->indkey.values[i] > 0)
			result = bms_add_member(result, index->rd_index->indkey.values[i]);
	}
	relation_close(index, AccessShareLock);
	return result;
}

/*
 * Columns that the publisher sends to have a row found in a partitioned table.
 * If it sends whole rows, it is not known here by which of them.
 */
static Bitmapset *
columns_of_key(const LogicalRepRelMapEntry *entry)
{
	Bitmapset  *result = NULL;

	if (entry->remoterel.replident == REPLICA_IDENTITY_FULL)
		return NULL;
	for (int i = 0; i < entry->attrmap->maplen; i++)
	{
		int			remote = entry->attrmap->attnums[i];

		if (remote >= 0 && bms_is_member(remote, entry->remoterel.attkeys))
			result = bms_add_member(result, i + 1);
	}
	return result;
}

/* Add a column to those by which rows are searched for. */
static void
add_column(ApplyKey *key, Form_pg_attribute att)
{
	AioRiSearch *search = key->search;
	KeyColumn  *column = &key->columns[search->nkeys];
	Oid			function;

	search->attnums[search->nkeys] = att->attnum;
	search->row_attnums[search->nkeys] = att->attnum;
	search->row_types[search->nkeys] = att->atttypid;
	search->operators[search->nkeys] =
		lookup_type_cache(att->atttypid, TYPECACHE_EQ_OPR)->eq_opr;
	search->nkeys++;

	column->attnum = att->attnum;
	column->typmod = att->atttypmod;
	column->typlen = att->attlen;
	getTypeInputInfo(att->atttypid, &function, &column->ioparam);
	fmgr_info(function, &column->input);
	getTypeBinaryInputInfo(att->atttypid, &column->receive, &column->ioparam);
	if (receive_is_known(column->receive))
		fmgr_info(column->receive, &column->receive_info);
	else
		column->receive = InvalidOid;
}

/*
 * Find out how rows of a table are searched for.  Columns whose types do not
 * allow it are left out: those in front of them in the index may do.
 */
static void
fill_key(ApplyKey *key, const LogicalRepRelMapEntry *entry, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		partitioned =
		rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	Bitmapset  *columns;
	int			attnum = -1;

	Assert(key->relid == RelationGetRelid(rel));
	if (!entry->updatable || (!partitioned && !OidIsValid(key->indexid)))
		return;
	columns = partitioned ? columns_of_key(entry) :
		columns_of_index(key->indexid, &key->incomplete);
	key->search = palloc0(sizeof(AioRiSearch));
	key->search->table = key->relid;
	key->search->partitioned = partitioned;
	key->search->index = key->indexid;
	key->search->by_identity = partitioned;
	key->columns = palloc0_array(KeyColumn, INDEX_MAX_KEYS);
	while ((attnum = bms_next_member(columns, attnum)) > 0 &&
		   key->search->nkeys < INDEX_MAX_KEYS)
	{
		Form_pg_attribute att = TupleDescAttr(desc, attnum - 1);

		if (type_is_known(att->atttypid))
			add_column(key, att);
	}
	if (key->search->nkeys == 0)
		key->search = NULL;
	else
		key->row = MakeSingleTupleTableSlot(CreateTupleDescCopy(desc),
											&TTSOpsVirtual);
}

/* What is known of a relation; its 'search' may be NULL. */
static ApplyKey *
get_key(const LogicalRepRelMapEntry *entry)
{
	LogicalRepRelId id = entry->remoterel.remoteid;
	ApplyKey   *key = hash_search(apply_keys, &id, HASH_FIND, NULL);
	ApplyKey	fresh = {.remoteid = id,.relid = entry->localreloid,
	.indexid = entry->localindexoid};
	Relation	rel;
	MemoryContext old;

	if (key != NULL && key->relid == entry->localreloid &&
		key->indexid == entry->localindexoid)
		return key;
	if (key != NULL)
		MemoryContextDelete(key->context);
	hash_search(apply_keys, &id, HASH_REMOVE, NULL);
	fresh.context = AllocSetContextCreate(key_context, "key of changes",
										  ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(fresh.context);
	filling = true;
	rel = AioOpenIfFree(entry->localreloid);
	fresh.incomplete = rel == NULL;
	if (rel != NULL)
	{
		/* it may have been found out of date when the lock was taken */
		if (entry->localrelvalid)
			fill_key(&fresh, entry, rel);
		relation_close(rel, AccessShareLock);
	}
	MemoryContextSwitchTo(old);
	key = hash_search(apply_keys, &id, HASH_ENTER, NULL);
	*key = fresh;
	filling = false;
	return key;
}

static const char *
read_bytes(Cursor *cursor, int n)
{
	const char *data = cursor->data;

	if (n < 0 || n > cursor->len)
		return NULL;
	cursor->data += n;
	cursor->len -= n;
	return data;
}

static bool
read_int(Cursor *cursor, int size, int *value)
{
	const char *data = read_bytes(cursor, size);
	uint8		byte;
	uint16		two;
	uint32		four;

	if (data == NULL)
		return false;
	switch (size)
	{
		case 1:
			memcpy(&byte, data, 1);
			*value = byte;
			break;
		case 2:
			memcpy(&two, data, 2);
			*value = pg_ntoh16(two);
			break;
		default:
			Assert(size == 4);
			memcpy(&four, data, 4);
			*value = (int) pg_ntoh32(four);
			break;
	}
	return true;
}

/* Convert a value; returns false if it cannot be. */
static bool
convert(KeyColumn *column, int status, const char *data, int len, Datum *value)
{
	ErrorSaveContext error = {T_ErrorSaveContext};
	StringInfoData binary;

	if (status == LOGICALREP_COLUMN_TEXT)
		return InputFunctionCallSafe(&column->input, pnstrdup(data, len),
									 column->ioparam, column->typmod,
									 (Node *) &error, value);
	if (status != LOGICALREP_COLUMN_BINARY || !OidIsValid(column->receive) ||
		len != column->typlen)
		return false;
	initReadOnlyStringInfo(&binary, unconstify(char *, data), len);
	*value = ReceiveFunctionCall(&column->receive_info, &binary,
								 column->ioparam, column->typmod);
	return true;
}

/* Set a column of the key to what the publisher sends as column 'remote'. */
static void
set_column(ApplyKey *key, const LogicalRepRelMapEntry *entry, int remote,
		   int status, const char *data, int len)
{
	for (int i = 0; i < key->search->nkeys; i++)
	{
		KeyColumn  *column = &key->columns[i];
		int			n = column->attnum - 1;

		if (n < entry->attrmap->maplen &&
			entry->attrmap->attnums[n] == remote)
			key->row->tts_isnull[n] = !convert(column, status, data, len,
											   &key->row->tts_values[n]);
	}
}

/* Read a row, as far as it is the key. */
static bool
read_row(Cursor *cursor, ApplyKey *key, const LogicalRepRelMapEntry *entry)
{
	int			ncolumns;

	if (!read_int(cursor, 2, &ncolumns))
		return false;
	for (int i = 0; i < ncolumns; i++)
	{
		int			status;
		int			len = 0;
		const char *data = NULL;

		if (!read_int(cursor, 1, &status))
			return false;
		if (status == LOGICALREP_COLUMN_TEXT ||
			status == LOGICALREP_COLUMN_BINARY)
		{
			if (!read_int(cursor, 4, &len))
				return false;
			data = read_bytes(cursor, len);
			if (data == NULL)
				return false;
		}
		set_column(key, entry, i, status, data, len);
	}
	return true;
}

/* Has anything changed that keys depend on, since they have been looked at? */
bool
AioApplyKeysAreStale(void)
{
	return keys_stale;
}

/*
 * Forget what may be out of date, and what was locked when it was to be found
 * out, before messages are looked at.
 */
void
AioApplyBeginKeys(void)
{
	HASH_SEQ_STATUS status;
	ApplyKey   *key;

	if (apply_keys == NULL || keys_stale)
		init_keys();
	hash_seq_init(&status, apply_keys);
	while ((key = hash_seq_search(&status)) != NULL)
	{
		if (!key->incomplete && !(key->search != NULL && key->search->incomplete))
			continue;
		MemoryContextDelete(key->context);
		hash_search(apply_keys, &key->remoteid, HASH_REMOVE, NULL);
	}
}

/*
 * The key that a message will search for, and where; NULL if nothing is known
 * of it.  The message is an UPDATE's or a DELETE's, from the action on.  Values
 * are allocated in the current memory context, and the slot is valid until the
 * next call.  May look up catalogs.
 */
TupleTableSlot *
AioApplyGetKey(const char *data, int len, bool has_xid, AioRiSearch **search)
{
	Cursor		cursor = {data, len};
	const LogicalRepRelMapEntry *entry;
	ApplyKey   *key;
	int			kind;
	int			id;

	if (read_bytes(&cursor, has_xid ? 5 : 1) == NULL ||
		!read_int(&cursor, 4, &id) || !read_int(&cursor, 1, &kind) ||
		(kind != 'K' && kind != 'O' && kind != 'N'))
		return NULL;
	entry = AioFindRemoteRelation((uint32) id);
	if (entry == NULL || !AioAppliesChangesOf(entry))
		return NULL;
	key = get_key(entry);
	if (key->search == NULL || !entry->localrelvalid)
		return NULL;
	ExecClearTuple(key->row);
	memset(key->row->tts_isnull, true,
		   key->row->tts_tupleDescriptor->natts * sizeof(bool));
	if (!read_row(&cursor, key, entry))
		return NULL;
	ExecStoreVirtualTuple(key->row);
	if (++key->nlooked > ROWS_REMEMBERED)
	{
		AioRiForgetKeys(key->search);
		key->nlooked = 0;
	}
	*search = key->search;
	return key->row;
}

/* Is this a relation in which changes search, as far as is known? */
bool
AioApplySearchesIn(Oid relid)
{
	HASH_SEQ_STATUS status;
	ApplyKey   *key;
	bool		result = false;

	if (apply_keys == NULL)
		return false;
	hash_seq_init(&status, apply_keys);
	while ((key = hash_seq_search(&status)) != NULL)
	{
		if (key->search == NULL)
			continue;
		foreach_ptr(AioRiTarget, target, key->search->targets)
			result |= target->table == relid || target->index == relid;
	}
	return result;
}

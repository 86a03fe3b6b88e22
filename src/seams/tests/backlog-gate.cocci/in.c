void
index_rescan(IndexScanDesc scan, ScanKey keys)
{
	scan->kill_prior_tuple = false;
	scan->xs_heap_continue = false;
	scan->indexRelation->rd_indam->amrescan(scan, keys);
}

Relation
relation_open(Oid relationId, LOCKMODE lockmode)
{
	Relation r = find(relationId);

	pgstat_init_relation(r);

	return r;
}

Relation
try_relation_open(Oid relationId, LOCKMODE lockmode)
{
	Relation r = find(relationId);

	if (r == NULL)
		return NULL;
	pgstat_init_relation(r);

	return r;
}

void
ExecOpenIndices(ResultRelInfo *resultRelInfo)
{
	foreach(l, list)
	{
		Relation indexDesc;

		indexDesc = index_open(indexOid, RowExclusiveLock);
		add(indexDesc);
	}
}

void
ExecCloseIndices(ResultRelInfo *resultRelInfo)
{
	int numIndices;

	numIndices = resultRelInfo->ri_NumIndices;
	close_all(numIndices);
}

/* not these */
void
amcheck(IndexScanDesc scan)
{
	Relation r = index_open(indexOid, AccessShareLock);

	pgstat_init_relation(r);
	scan->kill_prior_tuple = false;
	numIndices = resultRelInfo->ri_NumIndices;
}

static void
RelationInvalidateRelation(Relation relation)
{
	close(relation);
	if (relation->rd_amcache)
		AioRetireAmCache(relation);
	pfree(relation->rd_other);
}

static void
other(Relation relation)
{
	pfree(relation->rd_amcache);
}

static Datum
RI_FKey_check(TriggerData *trigdata)
{
	if (!table_tuple_satisfies_snapshot(rel, newslot, SnapshotSelf))
		return PointerGetDatum(NULL);
	pk_rel = table_open(riinfo->pk_relid, RowShareLock);
	if (AioRiHasParent(trigdata, riinfo->constraint_id, pk_rel, newslot))
		return PointerGetDatum(NULL);
	SPI_connect();
	ri_BuildQueryKey(&qkey, riinfo, RI_PLAN_CHECK_LOOKUPPK);
	ri_PerformCheck(riinfo, newslot);
	return PointerGetDatum(NULL);
}

static bool
ri_Check_Pk_Match(Relation pk_rel)
{
	SPI_connect();
	ri_BuildQueryKey(&qkey, riinfo, RI_PLAN_CHECK_LOOKUPPK_FROM_PK);
	return true;
}

static Datum
ri_restrict(TriggerData *trigdata, bool is_no_action)
{
	fk_rel = table_open(riinfo->fk_relid, RowShareLock);
	oldslot = trigdata->tg_trigslot;
	if (AioRiHasNoChild(trigdata, riinfo->constraint_id, fk_rel, oldslot))
		return PointerGetDatum(NULL);
	if (is_no_action && !riinfo->hasperiod &&
		ri_Check_Pk_Match(pk_rel, fk_rel, oldslot, riinfo))
	{
		table_close(fk_rel, RowShareLock);
		return PointerGetDatum(NULL);
	}
	SPI_connect();
	return PointerGetDatum(NULL);
}

Datum
RI_FKey_cascade_del(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = context_of(fcinfo);
	AioRiCountQuery(trigdata);
	SPI_connect();
	return PointerGetDatum(NULL);
}

static Datum
ri_set(TriggerData *trigdata)
{
	AioRiCountQuery(trigdata);
	SPI_connect();
	return PointerGetDatum(NULL);
}

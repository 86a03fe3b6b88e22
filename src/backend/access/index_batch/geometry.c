/*-------------------------------------------------------------------------
 *
 * geometry.c
 *	  Which geometric values an index can place without failing.
 *
 * INVARIANT-94: an entry is collected only if inserting it cannot fail for what
 * is in it.  GiST computes areas, which overflow where coordinates are huge,
 * and a quad tree raises an error for NaN, which is in no quadrant.  Values
 * like these, which are rare, are inserted at once, in the order of rows.  Of
 * operator classes that are not built in it is not known for which values they
 * raise errors: they are asked (gist_drain.c, spgist_am.c).
 *
 * Tests: src/test/aio/index/t/018_first_error.pl.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/transam.h"
#include "built_in_ams.h"
#include "catalog/pg_type_d.h"
#include "utils/geo_decls.h"
#include "utils/rel.h"

/* the square of twice this does not overflow */
#define COORDINATE_MAX	1e100

/* False for NaN, too. */
static inline bool
is_ordinary(float8 coordinate)
{
	return fabs(coordinate) <= COORDINATE_MAX;
}

static bool
box_is_ordinary(const BOX *box)
{
	return is_ordinary(box->high.x) && is_ordinary(box->high.y) &&
		is_ordinary(box->low.x) && is_ordinary(box->low.y);
}

static bool
value_is_ordinary(Oid type, Datum value)
{
	POLYGON    *polygon;
	bool		result;

	switch (type)
	{
		case POINTOID:
			return is_ordinary(DatumGetPointP(value)->x) &&
				is_ordinary(DatumGetPointP(value)->y);
		case BOXOID:
			return box_is_ordinary(DatumGetBoxP(value));
		case CIRCLEOID:
			return is_ordinary(DatumGetCircleP(value)->center.x) &&
				is_ordinary(DatumGetCircleP(value)->center.y) &&
				is_ordinary(DatumGetCircleP(value)->radius);
		case POLYGONOID:
			polygon = DatumGetPolygonP(value);
			result = box_is_ordinary(&polygon->boundbox);
			if ((Pointer) polygon != DatumGetPointer(value))
				pfree(polygon);
			return result;
		default:
			return true;
	}
}

/* Is the operator class of a key column one of those that initdb makes? */
bool
AioOpclassIsBuiltIn(Relation index, int column)
{
	return index->rd_opfamily[column] < FirstGenbkiObjectId;
}

/*
 * Can a GiST or SP-GiST index of built-in operator classes place these values,
 * whatever they are?
 */
bool
AioCanPlace(const AioIndexBatch *batch, const Datum *values, const bool *isnull)
{
	Relation	index = batch->index;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!isnull[i] && !value_is_ordinary(index->rd_opcintype[i], values[i]))
			return false;
	}
	return true;
}

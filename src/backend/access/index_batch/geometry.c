/*-------------------------------------------------------------------------
 *
 * geometry.c
 *	  Which geometric values an index can place without failing.
 *
 * INVARIANT-94: an entry is collected only if inserting it cannot fail for what
 * is in it, or in the index.  GiST computes areas, which overflow where
 * coordinates are huge, and a quad tree raises an error for NaN, which is in no
 * quadrant.  Values like these, which are rare, are inserted at once, in the
 * order of rows.  So are all others while the root is a leaf, which takes in
 * anything and then cannot be split, and where the root shows that such a value
 * is somewhere below, with which an ordinary one makes a huge area.  Of
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
point_is_ordinary(const Point *point)
{
	return is_ordinary(point->x) && is_ordinary(point->y);
}

bool
AioBoxIsOrdinary(const BOX *box)
{
	return is_ordinary(box->high.x) && is_ordinary(box->high.y) &&
		is_ordinary(box->low.x) && is_ordinary(box->low.y);
}

static bool
is_geometric(Oid type)
{
	return type == POINTOID || type == BOXOID || type == CIRCLEOID ||
		type == POLYGONOID;
}

static bool
value_is_ordinary(Oid type, Datum value)
{
	POLYGON    *polygon;
	bool		result;

	switch (type)
	{
		case POINTOID:
			return point_is_ordinary(DatumGetPointP(value));
		case BOXOID:
			return AioBoxIsOrdinary(DatumGetBoxP(value));
		case CIRCLEOID:
			return point_is_ordinary(&DatumGetCircleP(value)->center) &&
				is_ordinary(DatumGetCircleP(value)->radius);
		default:
			Assert(type == POLYGONOID);
			polygon = DatumGetPolygonP(value);
			result = AioBoxIsOrdinary(&polygon->boundbox);
			if ((Pointer) polygon != DatumGetPointer(value))
				pfree(polygon);
			return result;
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
 * whatever they are?  root_is_ordinary() looks at its root, and returns whether
 * that is an inner page that shows nothing which is not ordinary; it is asked
 * until it says so, and what other sessions insert after that is not noticed.
 * The caller has no page of the index locked.
 */
bool
AioCanPlace(AioIndexBatch *batch, const Datum *values, const bool *isnull,
			bool (*root_is_ordinary) (Relation index))
{
	Relation	index = batch->index;
	bool		geometric = false;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (!is_geometric(index->rd_opcintype[i]))
			continue;
		geometric = true;
		if (isnull[i] || value_is_ordinary(index->rd_opcintype[i], values[i]))
			continue;
		/* it may be in the root in a moment */
		batch->root_is_ordinary = false;
		return false;
	}
	if (geometric && !batch->root_is_ordinary)
		batch->root_is_ordinary = root_is_ordinary(index);
	return !geometric || batch->root_is_ordinary;
}

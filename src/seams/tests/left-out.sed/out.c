/* of ours: an INSERT is slow, and asks to be told */
extern PGDLLIMPORT bool aio_rows_are_few;
extern void AioLeftOutRow(PlanState *node);

#define InstrCountFiltered1(node, delta) \
	do { \
		if (unlikely(aio_rows_are_few)) \
			AioLeftOutRow((PlanState *) (node)); \
		if ((node)->instrument) \
			(node)->instrument->nfiltered1 += (delta); \
	} while(0)
#define InstrCountFiltered2(node, delta) \
	do { \
		if (unlikely(aio_rows_are_few)) \
			AioLeftOutRow((PlanState *) (node)); \
		if ((node)->instrument) \
			(node)->instrument->nfiltered2 += (delta); \
	} while(0)

#define another(node) \
	do { \
		f(node); \
	} while(0)

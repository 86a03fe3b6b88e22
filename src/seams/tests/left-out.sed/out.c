/* of ours: an INSERT is slow, and asks to be told */
#ifdef BUILDING_DLL
extern PGDLLIMPORT bool aio_rows_are_few;
extern void AioLeftOutRow(PlanState *node);
#define AIO_LEFT_OUT_ROW(node) \
	do { \
		if (unlikely(aio_rows_are_few)) \
			AioLeftOutRow((PlanState *) (node)); \
	} while(0)
#else
#define AIO_LEFT_OUT_ROW(node) ((void) 0)
#endif

#define InstrCountFiltered1(node, delta) \
	do { \
		AIO_LEFT_OUT_ROW(node); \
		if ((node)->instrument) \
			(node)->instrument->nfiltered1 += (delta); \
	} while(0)
#define InstrCountFiltered2(node, delta) \
	do { \
		AIO_LEFT_OUT_ROW(node); \
		if ((node)->instrument) \
			(node)->instrument->nfiltered2 += (delta); \
	} while(0)

#define another(node) \
	do { \
		f(node); \
	} while(0)

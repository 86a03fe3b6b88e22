#define InstrCountFiltered1(node, delta) \
	do { \
		if ((node)->instrument) \
			(node)->instrument->nfiltered1 += (delta); \
	} while(0)
#define InstrCountFiltered2(node, delta) \
	do { \
		if ((node)->instrument) \
			(node)->instrument->nfiltered2 += (delta); \
	} while(0)

#define another(node) \
	do { \
		f(node); \
	} while(0)

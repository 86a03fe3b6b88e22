typedef struct PgFdwScanState
{
	Relation	rel;
	int			fetch_size;		/* number of tuples per fetch */
	struct AioFdwAhead *ahead;
	SubTransactionId began;
} PgFdwScanState;

typedef struct PgFdwModifyState
{
	Relation	rel;
} PgFdwModifyState;

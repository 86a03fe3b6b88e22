typedef struct PgFdwScanState
{
	Relation	rel;
	int			fetch_size;		/* number of tuples per fetch */
} PgFdwScanState;

typedef struct PgFdwModifyState
{
	Relation	rel;
} PgFdwModifyState;

# A node of a plan that leaves out a row may have its statement insert what waits.
#
# What: the macros that count rows which conditions filter call us, if a statement that has keys wait is slow.
# Without it: an INSERT whose scan filters a large table keeps the keys of the rows that it has got all the while.
# Could disappear: no; ExecProcNode() is not called in such a loop.
#
# target: src/include/nodes/execnodes.h AioLeftOutRow+3 aio_rows_are_few+3 PlanState+3 node+3

/^#define InstrCountFiltered[12]\(/,/while/ s|^\tdo \{ \\$|&\n\t\tif (unlikely(aio_rows_are_few)) \\\n\t\t\tAioLeftOutRow((PlanState *) (node)); \\|
s|^#define InstrCountFiltered1\(node, delta\) \\$|/* of ours: an INSERT is slow, and asks to be told */\nextern PGDLLIMPORT bool aio_rows_are_few;\nextern void AioLeftOutRow(PlanState *node);\n\n&|

# A node of a plan that leaves out a row may have its statement insert what waits.
#
# What: in the server, and not in extensions, the macros that count rows which conditions filter call us, if a statement
#   that has keys wait is slow.
# Without it: an INSERT whose scan filters a large table keeps the keys of the rows that it has got all the while.
# Could disappear: no; ExecProcNode() is not called in such a loop.
#
# target: src/include/nodes/execnodes.h AIO_LEFT_OUT_ROW+4 AioLeftOutRow+2 aio_rows_are_few+2 PlanState+2 node+6

/^#define InstrCountFiltered[12]\(/,/while/ s|^\tdo \{ \\$|&\n\t\tAIO_LEFT_OUT_ROW(node); \\|
s|^#define InstrCountFiltered1\(node, delta\) \\$|/* of ours: an INSERT is slow, and asks to be told */\n#ifdef BUILDING_DLL\nextern PGDLLIMPORT bool aio_rows_are_few;\nextern void AioLeftOutRow(PlanState *node);\n#define AIO_LEFT_OUT_ROW(node) \\\n\tdo { \\\n\t\tif (unlikely(aio_rows_are_few)) \\\n\t\t\tAioLeftOutRow((PlanState *) (node)); \\\n\t} while(0)\n#else\n#define AIO_LEFT_OUT_ROW(node) ((void) 0)\n#endif\n\n&|

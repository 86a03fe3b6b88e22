# Our tail of stack_depth.c: what the stack depth check measures against.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: a task's recursion is measured against the wrong stack.
# Could disappear: if upstream exported it.
#
# target: src/backend/utils/misc/stack_depth.c tails+1

$a\
\
#include "../../aio/tails/stack_depth.c"

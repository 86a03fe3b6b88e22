# Our tail of createas.c: the table that a receiver has created.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: workers could not be told into which table to insert.
# Could disappear: if DR_intorel were public.
#
# target: src/backend/commands/createas.c tails+1

$a\
\
#include "../aio/tails/createas.c"

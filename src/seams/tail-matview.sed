# Our tail of matview.c: the table that a receiver fills.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: workers could not be told into which table to insert.
# Could disappear: if DR_transientrel were public.
#
# target: src/backend/commands/matview.c tails+1

$a\
\
#include "../aio/tails/matview.c"

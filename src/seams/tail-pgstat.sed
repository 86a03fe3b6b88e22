# Our tail of pgstat.c: a second file of statistics.
#
# What: an #include at the end of the file, whose static names it needs.
# Without it: nobody could write or read a file of statistics but for the usual one.
# Could disappear: with stats-kinds.sed.
#
# target: src/backend/utils/activity/pgstat.c tails+1

$a\
\
#include "../../aio/tails/pgstat.c"

# Statistics of our kinds are in a file of their own, and go with those of relations.
#
# What: the functions that write and read the file of statistics ask which file it is and which kinds belong to it, and
#   their callers call ours, which call them twice.  Where upstream removes its file, ours is removed.  Where upstream
#   drops the statistics of a relation, or copies them, so do we.
# Without it: PostgreSQL without us would find kinds that it does not know, in a file or in WAL.  It resets all statistics
#   because of the one, and cannot replay the other.
# Could disappear: if upstream passed over kinds that it does not know.  Kinds that are not written to its file would not
#   help: all that writes, reads and checks it would have to be restated for ours, and no callback of a kind is called when
#   that is due.
#
# target: src/backend/utils/activity/pgstat.c AioStatsFile+2 AioWritesStats+2 AioWriteStatsFiles+1 AioReadStatsFiles+1 AioRemoveStatsFile+1 PGSTAT_STAT_PERMANENT_FILENAME-2 write_to_file-2 pgstat_write_statsfile-1 pgstat_read_statsfile-1
#   in pgstat_before_server_shutdown pgstat_discard_stats pgstat_read_statsfile pgstat_restore_stats pgstat_write_statsfile
# target: src/backend/utils/activity/pgstat_shmem.c AioDropStats+1 kind+1 dboid+1 objid+1
#   in pgstat_drop_entry_ext
# target: src/backend/utils/activity/pgstat_relation.c AioCopyIndexStats+1 dst+1 src+1
#   in pgstat_copy_relation_stats

s|^(\tconst char \*statfile = )PGSTAT_STAT_PERMANENT_FILENAME;$|\1AioStatsFile();|
s#^(\t\tif \()!(kind_info|info)->write_to_file\)$#\1!AioWritesStats(\2))#
/^pgstat_before_server_shutdown\(/,/^}/ s|^(\t+)pgstat_write_statsfile\(\);$|\1AioWriteStatsFiles();|
/^pgstat_restore_stats\(/,/^}/ s|^(\t+)pgstat_read_statsfile\(\);$|\1AioReadStatsFiles();|
/^pgstat_discard_stats\(/,/^}/ s|^(\t)pgstat_reset_after_failure\(\);$|\1AioRemoveStatsFile();\n&|
/^pgstat_drop_entry_ext\(/,/^}/ s|^\tkey\.objid = objid;$|&\n\n\tAioDropStats(kind, dboid, objid);|
/^pgstat_copy_relation_stats\(/,/^}/ s|^(\tsrcstats = )pgstat_fetch_stat_tabentry_ext\(|\tAioCopyIndexStats(dst, src);\n&|

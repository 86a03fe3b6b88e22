# pg_basebackup can have several connections for one backup.
#
# What: one more option; what it needs of the others is checked, and the command says that the backup is shared; messages of
#   the server come to us first; and the other connections are waited for, before the last progress is reported.
# Without it: a backup is no faster than one connection, and one process of the server.
# Could disappear: when upstream's pg_basebackup has several connections.
# include: aio/backup_jobs.h
# Why so many: an option of a program is in its help, its manual page, a table, a string and a switch, and is used in four
#   places.
#
# target: src/bin/pg_basebackup/pg_basebackup.c AioParseJobs+1 AioCheckJobs+1 AioShareCommand+1 AioCheckStart+1 AioReceiveChunk+1 ReceiveArchiveStreamChunk-1 AioReportEnd+1 progress_report-1 AioFinishJobs+1 jobs+2
#   in BaseBackup ReceiveArchiveStream main usage
# target: doc/src/sgml/ref/pg_basebackup.sgml jobs+1

/^\tprintf\(_\("  -r, --max-rate=RATE/i\
\tprintf(_("  -j, --jobs=NUM         use this many connections to receive the backup\\n"));
s/^\t\t\{"max-rate", required_argument, NULL, 'r'\},$/\t\t{"jobs", required_argument, NULL, 'j'},\n&/
s/"c:Cd:D:F:h:i:l:/"c:Cd:D:F:h:i:j:l:/
s/^\t\t\tcase 'l':$/\t\t\tcase 'j':\n\t\t\t\tAioParseJobs(optarg);\n\t\t\t\tbreak;\n&/
s/^\tconn = GetConnection\(\);$/\tAioCheckJobs();\n&/
s/^\tif \(use_new_option_syntax && buf\.len > 0\)$/\tAioShareCommand(\&buf, compressloc == COMPRESS_LOCATION_SERVER,\n\t\t\t\t\tcompression_algorithm, compression_detail);\n&/
/^\tif \(PQsendQuery\(conn, basebkp\) == 0\)$/,/^\tres = PQgetResult/s/^\tres = PQgetResult\(conn\);$/&\n\tAioCheckStart(res);/
s/^(\tReceiveCopyData\(conn, )ReceiveArchiveStreamChunk(, &state\);)$/\1AioReceiveChunk\2/
s/^(\t\t)progress_report(\(PQntuples\(res\), true, true\);)$/\1AioReportEnd\2/
s/^\tstrlcpy\(xlogend, .*$/&\n\tAioFinishJobs();/
/^      <term><option>-r <replaceable class="parameter">rate<.*$/i\
      <term><option>-j <replaceable class="parameter">number</replaceable></option></term>\
      <term><option>--jobs=<replaceable class="parameter">number</replaceable></option></term>\
      <listitem>\
       <para>\
        Receives the backup by this many connections, of which the server needs one <glossterm>WAL sender</glossterm> each,\
        beside that for <option>--wal-method=stream</option>.  This is possible in plain format, from a server of pgawait.\
       </para>\
      </listitem>\
     </varlistentry>\
\
     <varlistentry>

static void
usage(void)
{
	printf(_("  -i, --incremental=OLDMANIFEST\n"
			 "                         take incremental backup\n"));
	printf(_("  -j, --jobs=NUM         use this many connections to receive the backup\n"));
	printf(_("  -r, --max-rate=RATE    maximum transfer rate to transfer data directory\n"
			 "                         (in kB/s, or use suffix \"k\" or \"M\")\n"));
}

static void
ReceiveArchiveStream(PGconn *conn, pg_compress_specification *compress)
{
	ReceiveCopyData(conn, AioReceiveChunk, &state);
}

static void
ReceiveArchiveStreamChunk(size_t r, char *copybuf, void *callback_data)
{
}

static void
BaseBackup(char *compression_algorithm)
{
	res = PQgetResult(conn);
	AioShareCommand(&buf, compressloc == COMPRESS_LOCATION_SERVER,
					compression_algorithm, compression_detail);
	if (use_new_option_syntax && buf.len > 0)
		basebkp = psprintf("BASE_BACKUP (%s)", buf.data);
	else
		basebkp = psprintf("BASE_BACKUP %s", buf.data);
	if (PQsendQuery(conn, basebkp) == 0)
		pg_fatal("could not send replication command");
	res = PQgetResult(conn);
	AioCheckStart(res);
	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		pg_fatal("could not initiate base backup");
	res = PQgetResult(conn);
	if (serverMajor >= 1500)
	{
		ReceiveArchiveStream(conn, client_compress);
	}
	if (showprogress)
	{
		progress_update_filename(NULL);
		AioReportEnd(PQntuples(res), true, true);
	}
	strlcpy(xlogend, PQgetvalue(res, 0, 0), sizeof(xlogend));
	AioFinishJobs();
}

int
main(int argc, char **argv)
{
	static struct option long_options[] = {
		{"create-slot", no_argument, NULL, 'C'},
		{"jobs", required_argument, NULL, 'j'},
		{"max-rate", required_argument, NULL, 'r'},
		{NULL, 0, NULL, 0}
	};

	while ((c = getopt_long(argc, argv, "c:Cd:D:F:h:i:j:l:nNp:Pr:Rs:S:t:T:U:vwWX:zZ:",
							long_options, &option_index)) != -1)
	{
		switch (c)
		{
			case 'i':
				incremental_manifest = pg_strdup(optarg);
				break;
			case 'j':
				AioParseJobs(optarg);
				break;
			case 'l':
				label = pg_strdup(optarg);
				break;
		}
	}
	AioCheckJobs();
	conn = GetConnection();
	if (!conn)
		exit(1);
}

void
XLogPrefetcherFree(XLogPrefetcher *prefetcher)
{
	lrq_free(prefetcher->streaming_read);
	pfree(prefetcher);
}

static LsnReadQueueNextStatus
XLogPrefetcherNextBlock(uintptr_t pgsr_private, XLogRecPtr *lsn)
{
	for (;;)
	{
		if (!enabled)
		{
			*lsn = InvalidXLogRecPtr;
			return LRQ_NEXT_NO_IO;
		}
		if (record == NULL)
			prefetcher->no_readahead_until =
				prefetcher->reader->decode_queue_tail->lsn;
		if (new)
		{
			prefetcher->record = record;
		}
		while (next <= record->max_block_id)
		{
			*lsn = record->lsn;
			if (block->has_image)
				return LRQ_NEXT_NO_IO;
			result = PrefetchSharedBuffer(reln, block->forknum, block->blkno);
			if (BufferIsValid(result.recent_buffer))
				return LRQ_NEXT_NO_IO;
			else if (result.initiated_io)
				return LRQ_NEXT_IO;
			else if ((io_direct_flags & IO_DIRECT_DATA) == 0)
			{
				fail();
			}
		}
	}
}

void
XLogPrefetcherBeginRead(XLogPrefetcher *prefetcher, XLogRecPtr recPtr)
{
	prefetcher->reconfigure_count--;
	XLogBeginRead(prefetcher->reader, recPtr);
}

XLogRecord *
XLogPrefetcherReadRecord(XLogPrefetcher *prefetcher, char **errmsg)
{
	if (changed)
	{
		if (enabled)
		{
			max_inflight = maintenance_io_concurrency;
		}
		else
		{
			max_inflight = 1;
		}
	}
	lrq_complete_lsn(prefetcher->streaming_read, replayed_up_to);
	record = XLogNextRecord(prefetcher->reader, errmsg);
	if (!record)
		return NULL;
	return record;
}

static void
recoveryPausesHere(bool endOfRecovery)
{
	while (paused)
	{
		ConfirmRecoveryPaused();
		sleep();
	}
}

static bool
recoveryApplyDelay(XLogReaderState *record)
{
	while (true)
	{
		(void) WaitLatch(&latch, WL_LATCH_SET | WL_TIMEOUT, msecs, WAIT_EVENT_RECOVERY_APPLY_DELAY);
	}
	return true;
}

bool
RestoreArchivedFile(char *path)
{
	fflush(NULL);
	PreRestoreCommand();
	rc = system(command);
	PostRestoreCommand();
	return rc == 0;
}

void
BackgroundWriterMain(const void *startup_data, size_t startup_data_len)
{
	for (;;)
	{
		bool		can_hibernate;

		can_hibernate = BgBufferSync(&wb_context);
		sleep(can_hibernate);
	}
}

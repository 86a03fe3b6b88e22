void
XLogPrefetcherFree(XLogPrefetcher *prefetcher)
{
	AioReplayForget();
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
				AioReplayTryAgainAt(prefetcher->reader);
		if (new)
		{
			prefetcher->record = record;
			AioReplaySeeRecord(record);
		}
		while (next <= record->max_block_id)
		{
			*lsn = record->lsn;
			AioReplaySee(block, record->lsn);
			if (block->has_image)
				return LRQ_NEXT_NO_IO;
			result = AioReplayPrefetch(reln, block->forknum, block->blkno, block, reader, record->lsn);
			if (BufferIsValid(result.recent_buffer))
				return LRQ_NEXT_NO_IO;
			else if (result.initiated_io)
				return LRQ_NEXT_IO;
			else if (!aio_replay_active && (io_direct_flags & IO_DIRECT_DATA) == 0)
			{
				fail();
			}
		}
	}
}

void
XLogPrefetcherBeginRead(XLogPrefetcher *prefetcher, XLogRecPtr recPtr)
{
	AioReplayForget();
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
			max_inflight = AioReplayDepth(maintenance_io_concurrency);
		}
		else
		{
			max_inflight = 1;
		}
	}
	AioReplayBeforeReadAhead(prefetcher->reader);
	lrq_complete_lsn(prefetcher->streaming_read, replayed_up_to);
	AioReplayBeforeRecord(prefetcher->reader, lrq_inflight(prefetcher->streaming_read));
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
		AioReplayBeforeWait();
		ConfirmRecoveryPaused();
		sleep();
	}
}

static bool
recoveryApplyDelay(XLogReaderState *record)
{
	while (true)
	{
		AioReplayBeforeWait();
		(void) WaitLatch(&latch, WL_LATCH_SET | WL_TIMEOUT, msecs, WAIT_EVENT_RECOVERY_APPLY_DELAY);
	}
	return true;
}

bool
RestoreArchivedFile(char *path)
{
	AioReplayBeforeWait();
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

		can_hibernate = AioBackgroundWriterCycle(&wb_context);
		sleep(can_hibernate);
	}
}

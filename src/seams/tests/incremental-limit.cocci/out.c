FileBackupMethod
GetFileBackupMethod(unsigned *truncation_block_length)
{
	BlockNumber limit_block;
	unsigned	nblocks;

	brtentry = BlockRefTableGetEntry(brtab, &rlocator, forknum, &limit_block);
	if (limit_block <= start_blkno)
		return BACK_UP_FILE_FULLY;
	nblocks = AioGetChangedBlocks(&limit_block, brtentry, start_blkno, stop_blkno,
										  relative_block_numbers, RELSEG_SIZE);
	if (BlockNumberIsValid(limit_block))
		*truncation_block_length = limit_block;
	return BACK_UP_FILE_INCREMENTALLY;
}

int
others(BlockRefTableEntry *entry)
{
	return BlockRefTableEntryGetBlocks(entry, 0, 1, blocks, 1);
}

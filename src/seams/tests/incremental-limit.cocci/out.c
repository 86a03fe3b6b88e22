FileBackupMethod
GetFileBackupMethod(unsigned *truncation_block_length, BlockNumber limit_block)
{
	*truncation_block_length = size;
	if (BlockNumberIsValid(limit_block))
	{
		unsigned	relative_limit = limit_block;

		*truncation_block_length = Min(*truncation_block_length, relative_limit);
		if (*truncation_block_length > RELSEG_SIZE)
			*truncation_block_length = RELSEG_SIZE;
	}
	return BACK_UP_FILE_INCREMENTALLY;
}

void
reconstruct_from_incremental_file(char *input_filename)
{
	for (i = 0; i < latest_source->num_blocks; ++i)
	{
		sourcemap[b] = latest_source;
		full_copy_possible = false;
	}
	while (1)
	{
		rfile	   *s;

		if (s->header_length == 0)
			break;
		for (i = 0; i < s->num_blocks; ++i)
		{
			if (b < latest_source->truncation_block_length)
				sourcemap[b] = s;
		}
	}
}

static unsigned
find_reconstructed_block_length(rfile *s)
{
	for (i = 0; i < s->num_blocks; ++i)
		block_length++;
}

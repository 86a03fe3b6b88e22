	if (!PostmasterIsAliveInternal())
	{
		if (set->exit_on_postmaster_death)
			proc_exit(1);
	}

void
process_shared_preload_libraries(void)
{
	process_shared_preload_libraries_in_progress = true;
	load(libraries);
	process_shared_preload_libraries_in_progress = false;
}

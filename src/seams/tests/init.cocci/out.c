void
process_shared_preload_libraries(void)
{
	process_shared_preload_libraries_in_progress = true;
	AioInitialize();
	load(libraries);
	AioInitializeLast();
	process_shared_preload_libraries_in_progress = false;
}

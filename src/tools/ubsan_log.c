/*-------------------------------------------------------------------------
 *
 * ubsan_log.c
 *	  Lets UndefinedBehaviorSanitizer write to a file in spite of ASan.
 *
 * In a program that has both, log_path of gcc's libubsan has no effect but
 * on ASan's reports: it is set by a function that libasan has, too, which is
 * found first.  UBSan's go to standard error, and what a test or a client
 * makes of that would decide whether anybody sees them.  So this is linked
 * into each program and library of build/sanitize, and asks the right one.
 *
 * Tests: whoever runs ./pgawait test --sanitize sees its reports.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include <dlfcn.h>
#include <stdlib.h>

__attribute__((constructor))
static void
set_report_path(void)
{
	const char *path = getenv("UBSAN_LOG_PATH");
	void	   *library = dlopen("libubsan.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void		(*set) (const char *) = NULL;

	if (path == NULL || library == NULL)
		return;
	*(void **) &set = dlsym(library, "__sanitizer_set_report_path");
	if (set != NULL)
		set(path);
}

/*-------------------------------------------------------------------------
 *
 * methods.c
 *	  Which methods there are, and which of them can be used.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres_fe.h"

#include "pg_test_aio.h"

const IoMethod *const all_methods[] = {
	&method_sync, &method_worker, &method_uring, &method_libaio, NULL
};

/* methods that are wanted and work, as in all_methods */
static bool usable[METHODS_LIMIT];

/* Try the methods that are wanted, and keep those that work. */
void
start_methods(void)
{
	for (int i = 0; all_methods[i] != NULL; i++)
	{
		const IoMethod *method = all_methods[i];
		char	   *why_not;

		if (!options.methods[i])
			continue;
		why_not = method->start(method->max_depth);
		usable[i] = why_not == NULL;
		if (why_not != NULL)
		{
			results_skip(method->name, why_not);
			pfree(why_not);
		}
	}
}

/* Can a method be used on a file that has been opened so? */
bool
method_is_usable(const IoMethod *method, FileMode mode)
{
	for (int i = 0; all_methods[i] != NULL; i++)
	{
		if (all_methods[i] == method)
			return usable[i] && (mode == MODE_DIRECT || !method->direct_only);
	}
	return false;
}

/* The first of a list that ends with NULL; NULL if there is none. */
const IoMethod *
first_usable(const IoMethod *const *methods, FileMode mode)
{
	while (*methods != NULL && !method_is_usable(*methods, mode))
		methods++;
	return *methods;
}

/*-------------------------------------------------------------------------
 *
 * faultfs.c
 *	  A file system that shows a directory as if its disk were faulty.
 *
 * Usage: faultfs DIRECTORY MOUNTPOINT [-f] [-o OPTION,...]
 *
 *	 metadata=ordered|strict	which changes of names a sync makes durable
 *	 seed=NUMBER	of all that is random
 *	 cache=BYTES	more than these are not volatile at the same time
 *	 durable		everything is, at once
 *	 uncached		the kernel keeps no content of files
 *	 account=NAME	become this account once mounted; all files belong to it
 *
 * and options of FUSE; -f keeps it in the foreground.  Only root can mount it
 * for an account other than its own.  Faults are programmed while it is
 * mounted, see README.md.
 *
 * What it needs for itself is in HIDDEN, in the directory, which is locked such
 * that no other of its kind uses the same directory.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <dirent.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/resource.h>

/* requests that are carried out at the same time */
#define MAX_THREADS		256

/* files that the kernel may know, as each is open here */
#define MAX_OPEN		(1 << 20)

#define DEFAULT_CACHE	(UINT64_C(4) << 30)

typedef struct Options
{
	char	   *directory;
	char	   *account;
	char	   *metadata;
	char	   *seed;
	char	   *cache;
	int			durable;
	int			uncached;
} Options;

Settings	settings;
int			root;
int			hidden;
struct fuse_session *session;

static pthread_rwlock_t power = LOCK_INITIALIZER;
static atomic_bool lost;

static const struct fuse_opt option_spec[] = {
	{"account=%s", offsetof(Options, account), 0},
	{"metadata=%s", offsetof(Options, metadata), 0},
	{"seed=%s", offsetof(Options, seed), 0},
	{"cache=%s", offsetof(Options, cache), 0},
	{"durable", offsetof(Options, durable), 1},
	{"uncached", offsetof(Options, uncached), 1},
	FUSE_OPT_END
};

/* ------------------------------------------------------------------------
 * The power switch
 * ------------------------------------------------------------------------
 */

/* Do not lose power right now, if it is not lost yet. */
void
power_hold(void)
{
	pthread_rwlock_rdlock(&power);
}

/* Begin to change something; false if there is no power. */
bool
power_enter(void)
{
	power_hold();
	if (!lost)
		return true;
	power_leave();
	return false;
}

void
power_leave(void)
{
	pthread_rwlock_unlock(&power);
}

bool
power_is_lost(void)
{
	return lost;
}

/* From now on all requests fail. */
void
power_lose(Loss *loss)
{
	lost = true;
	pthread_rwlock_wrlock(&power);
	names_undo(loss);
	data_undo(loss);
	pthread_rwlock_unlock(&power);
}

/* All that is volatile becomes durable. */
void
power_sync(void)
{
	pthread_rwlock_wrlock(&power);
	names_all_durable();
	data_all_durable();
	pthread_rwlock_unlock(&power);
}

/* ------------------------------------------------------------------------
 * Helpers
 * ------------------------------------------------------------------------
 */

/* Digits, and nothing else. */
bool
parse_number(const char *text, uint64_t maximum, uint64_t *number)
{
	char	   *end;

	if (text[0] == '\0' || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *number <= maximum;
}

/* Digits, with a point or without. */
bool
parse_decimal(const char *text, double maximum, double *number)
{
	char	   *end;

	if (text[strspn(text, "0123456789.")] != '\0' ||
		text[strcspn(text, "0123456789")] == '\0')
		return false;
	*number = strtod(text, &end);
	return *end == '\0' && *number <= maximum;
}

/* Remove a file, or a directory with all that is in it. */
int
remove_tree(int parent, const char *name)
{
	DIR		   *directory;
	struct dirent *entry;
	int			fd;
	int			error = 0;

	if (unlinkat(parent, name, 0) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	directory = fd < 0 ? NULL : fdopendir(fd);
	if (directory == NULL)
		return errno;
	while (error == 0 && (entry = readdir(directory)) != NULL)
	{
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = remove_tree(fd, entry->d_name);
	}
	closedir(directory);
	if (error == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0)
		error = errno;
	return error;
}

/* ------------------------------------------------------------------------
 * Starting
 * ------------------------------------------------------------------------
 */

static bool
complain(const char *what, const char *why)
{
	fprintf(stderr, "faultfs: %s: %s\n", what, why);
	return false;
}

/* The first word that is no option is the directory. */
static int
take_directory(void *data, const char *word, int key, struct fuse_args *args)
{
	Options    *options = data;

	if (key != FUSE_OPT_KEY_NONOPT || options->directory != NULL)
		return 1;
	options->directory = strdup(word);
	return options->directory == NULL ? -1 : 0;
}

static bool
use_options(const Options *options)
{
	uint64_t	seed = 0;

	settings.cache = DEFAULT_CACHE;
	settings.durable = options->durable;
	settings.uncached = options->uncached;
	settings.strict = options->metadata != NULL &&
		strcmp(options->metadata, "strict") == 0;
	if (options->metadata != NULL && !settings.strict &&
		strcmp(options->metadata, "ordered") != 0)
		return complain("metadata", "is ordered or strict");
	if (options->seed != NULL &&
		!parse_number(options->seed, UINT64_MAX, &seed))
		return complain("seed", "is a number");
	if (options->cache != NULL &&
		!parse_number(options->cache, INT64_MAX, &settings.cache))
		return complain("cache", "is a number of bytes");
	settings.seed = seed;
	return true;
}

/* As many as we may, if it is not as many as we want. */
static void
raise_limit(void)
{
	struct rlimit limit = {.rlim_cur = MAX_OPEN,.rlim_max = MAX_OPEN};

	if (setrlimit(RLIMIT_NOFILE, &limit) == 0 ||
		getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Open the directory, lock it, and make in it what we need. */
static bool
open_directory(const char *directory)
{
	int			error;

	root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return complain(directory, strerror(errno));
	if (flock(root, LOCK_EX | LOCK_NB) < 0)
		return complain(directory, "another faultfs uses it");
	error = remove_tree(root, HIDDEN);
	if (error != 0 && error != ENOENT)
		return complain(HIDDEN, strerror(error));
	if (mkdirat(root, HIDDEN, 0700) < 0 ||
		(hidden = openat(root, HIDDEN,
						 O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return complain(directory, strerror(errno));
	if ((error = data_start()) != 0 || (error = nodes_start()) != 0 ||
		(error = control_open()) != 0)
	{
		remove_tree(root, HIDDEN);
		return complain(directory, strerror(error));
	}
	return true;
}

/* For a while, or for good. */
static bool
become(const struct passwd *account, bool for_good)
{
	if (account == NULL)
		return true;
	if (for_good ? seteuid(0) == 0 && setgroups(0, NULL) == 0 &&
		setgid(account->pw_gid) == 0 && setuid(account->pw_uid) == 0 :
		setegid(account->pw_gid) == 0 && seteuid(account->pw_uid) == 0)
		return true;
	return complain(account->pw_name, "cannot become this account");
}

/* Until it is unmounted, or a signal comes. */
static bool
loop(void)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	bool		done;

	fuse_loop_cfg_set_max_threads(config, MAX_THREADS);
	fuse_loop_cfg_set_idle_threads(config, MAX_THREADS);
	done = fuse_session_loop_mt(session, config) >= 0;
	fuse_loop_cfg_destroy(config);
	return done;
}

static bool
serve(const struct passwd *account, bool foreground)
{
	bool		done = false;

	if (!become(account, true) || fuse_daemonize(foreground) != 0 ||
		fuse_set_signal_handlers(session) != 0)
		return false;
	if (control_start() == 0)
	{
		done = loop();
		control_stop();
	}
	fuse_remove_signal_handlers(session);
	return done;
}

int
main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
	struct fuse_cmdline_opts command;
	Options		options = {0};
	struct passwd *account = NULL;
	bool		done = false;

	if (fuse_opt_parse(&args, &options, option_spec, take_directory) < 0 ||
		fuse_parse_cmdline(&args, &command) < 0)
		return 1;
	if (options.directory == NULL || command.mountpoint == NULL)
	{
		fprintf(stderr, "usage: faultfs DIRECTORY MOUNTPOINT [-f] [-o OPTIONS]\n");
		return 1;
	}
	if (!use_options(&options))
		return 1;
	if (options.account != NULL && (account = getpwnam(options.account)) == NULL)
	{
		complain(options.account, "there is no such account");
		return 1;
	}

	/* modes are the caller's business */
	umask(0);
	raise_limit();
	if (!become(account, false) || !open_directory(options.directory))
		return 1;

	/* Whatever the caller may do, we do it; so the kernel has to check that. */
	if ((account == NULL || seteuid(0) == 0) &&
		fuse_opt_add_arg(&args, "-odefault_permissions") == 0 &&
		(session = fuse_session_new(&args, &requests, sizeof(requests),
									NULL)) != NULL)
	{
		if (fuse_session_mount(session, command.mountpoint) == 0)
		{
			done = serve(account, command.foreground);
			fuse_session_unmount(session);
		}
		fuse_session_destroy(session);
	}
	if (geteuid() == 0)
		(void) become(account, false);
	remove_tree(root, HIDDEN);
	fuse_opt_free_args(&args);
	return done ? 0 : 1;
}

/*-------------------------------------------------------------------------
 *
 * slowdisk.c
 *	  A file system that shows a directory as if its disk were slow.
 *
 * Usage: slowdisk DIRECTORY MOUNTPOINT [-o delay=MICROSECONDS] [-o nofallocate]
 *				   [-o account=NAME] [options of FUSE]
 *
 * Whatever makes a disk work takes so much longer: reads and writes that reach
 * the file system, allocation of space, and syncs.  Any number of them are
 * delayed at the same time, as a disk behind a network would do.  What a file
 * system does in memory (looking up, sizes, truncation) is not delayed.  With
 * nofallocate, space cannot be allocated ahead, as on file systems that do not
 * support that.
 *
 * Only root can mount it for an account other than its own.  With 'account' the
 * process becomes that account once it has mounted; all files belong to it.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#define FUSE_USE_VERSION 312
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <fuse_lowlevel.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* requests that are carried out at the same time */
#define MAX_THREADS		256

/* requests that the kernel may have given us and not waited for */
#define MAX_BACKGROUND	256

struct options
{
	char	   *directory;
	char	   *account;
	unsigned int delay;			/* us */
	int			nofallocate;
};

static struct options options;

static const struct fuse_opt option_spec[] = {
	{"delay=%u", offsetof(struct options, delay), 0},
	{"account=%s", offsetof(struct options, account), 0},
	{"nofallocate", offsetof(struct options, nofallocate), 1},
	FUSE_OPT_END
};

/* the directory that is shown */
static int	root;

/* Paths begin with a slash, and are taken relative to the root. */
static const char *
relative(const char *path)
{
	return path[1] == '\0' ? "." : path + 1;
}

static int
result(long value)
{
	return value < 0 ? -errno : (int) value;
}

static void
use_disk(void)
{
	struct timespec left = {
		.tv_sec = options.delay / 1000000,
		.tv_nsec = options.delay % 1000000 * 1000L,
	};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* ------------------------------------------------------------------------
 * What makes the disk work
 * ------------------------------------------------------------------------
 */

static int
slow_read(const char *path, char *buffer, size_t size, off_t offset,
		  struct fuse_file_info *file)
{
	use_disk();
	return result(pread(file->fh, buffer, size, offset));
}

static int
slow_write(const char *path, const char *buffer, size_t size, off_t offset,
		   struct fuse_file_info *file)
{
	use_disk();
	return result(pwrite(file->fh, buffer, size, offset));
}

static int
slow_fsync(const char *path, int datasync, struct fuse_file_info *file)
{
	use_disk();
	return result(datasync ? fdatasync(file->fh) : fsync(file->fh));
}

static int
slow_fallocate(const char *path, int mode, off_t offset, off_t length,
			   struct fuse_file_info *file)
{
	if (options.nofallocate)
		return -EOPNOTSUPP;
	use_disk();
	return result(fallocate(file->fh, mode, offset, length));
}

/* ------------------------------------------------------------------------
 * What does not
 * ------------------------------------------------------------------------
 */

static int
get_attributes(const char *path, struct stat *attributes,
			   struct fuse_file_info *file)
{
	if (file != NULL)
		return result(fstat(file->fh, attributes));
	return result(fstatat(root, relative(path), attributes,
						  AT_SYMLINK_NOFOLLOW));
}

static int
read_link(const char *path, char *target, size_t size)
{
	ssize_t		length = readlinkat(root, relative(path), target, size - 1);

	if (length < 0)
		return -errno;
	target[length] = '\0';
	return 0;
}

static int
make_directory(const char *path, mode_t mode)
{
	return result(mkdirat(root, relative(path), mode));
}

static int
remove_file(const char *path)
{
	return result(unlinkat(root, relative(path), 0));
}

static int
remove_directory(const char *path)
{
	return result(unlinkat(root, relative(path), AT_REMOVEDIR));
}

static int
make_symlink(const char *target, const char *path)
{
	return result(symlinkat(target, root, relative(path)));
}

static int
rename_file(const char *from, const char *to, unsigned int flags)
{
	return result(renameat2(root, relative(from), root, relative(to), flags));
}

static int
link_file(const char *from, const char *to)
{
	return result(linkat(root, relative(from), root, relative(to), 0));
}

static int
change_mode(const char *path, mode_t mode, struct fuse_file_info *file)
{
	return result(fchmodat(root, relative(path), mode, 0));
}

static int
change_owner(const char *path, uid_t user, gid_t group,
			 struct fuse_file_info *file)
{
	return result(fchownat(root, relative(path), user, group,
						   AT_SYMLINK_NOFOLLOW));
}

static int
truncate_file(const char *path, off_t size, struct fuse_file_info *file)
{
	int			fd;
	int			status;

	if (file != NULL)
		return result(ftruncate(file->fh, size));
	fd = openat(root, relative(path), O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	status = result(ftruncate(fd, size));
	close(fd);
	return status;
}

static int
set_times(const char *path, const struct timespec times[2],
		  struct fuse_file_info *file)
{
	return result(utimensat(root, relative(path), times, AT_SYMLINK_NOFOLLOW));
}

/*
 * What is open here goes through the page cache, whatever was asked for: the
 * buffers that we get are not aligned.
 */
static int
open_flags(const struct fuse_file_info *file)
{
	return (file->flags & ~(O_DIRECT | O_SYNC | O_DSYNC | O_APPEND)) | O_CLOEXEC;
}

static int
open_file(const char *path, struct fuse_file_info *file)
{
	int			fd = openat(root, relative(path), open_flags(file));

	if (fd < 0)
		return -errno;
	file->fh = fd;
	file->keep_cache = 1;
	return 0;
}

static int
create_file(const char *path, mode_t mode, struct fuse_file_info *file)
{
	int			fd = openat(root, relative(path), open_flags(file) | O_CREAT,
							mode);

	if (fd < 0)
		return -errno;
	file->fh = fd;
	return 0;
}

static int
release_file(const char *path, struct fuse_file_info *file)
{
	return result(close(file->fh));
}

static int
read_directory(const char *path, void *buffer, fuse_fill_dir_t fill,
			   off_t offset, struct fuse_file_info *file,
			   enum fuse_readdir_flags flags)
{
	int			fd = openat(root, relative(path),
							O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR		   *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (directory == NULL)
		return -errno;
	while ((entry = readdir(directory)) != NULL)
	{
		if (fill(buffer, entry->d_name, NULL, 0, 0) != 0)
			break;
	}
	closedir(directory);
	return 0;
}

static int
statistics(const char *path, struct statvfs *statistics)
{
	return result(fstatvfs(root, statistics));
}

static void *
start(struct fuse_conn_info *connection, struct fuse_config *config)
{
	connection->max_background = MAX_BACKGROUND;
	connection->congestion_threshold = MAX_BACKGROUND;
	config->nullpath_ok = 0;
	config->use_ino = 1;
	return NULL;
}

static const struct fuse_operations operations = {
	.init = start,
	.getattr = get_attributes,
	.readlink = read_link,
	.mkdir = make_directory,
	.unlink = remove_file,
	.rmdir = remove_directory,
	.symlink = make_symlink,
	.rename = rename_file,
	.link = link_file,
	.chmod = change_mode,
	.chown = change_owner,
	.truncate = truncate_file,
	.utimens = set_times,
	.open = open_file,
	.create = create_file,
	.release = release_file,
	.readdir = read_directory,
	.statfs = statistics,
	.read = slow_read,
	.write = slow_write,
	.fsync = slow_fsync,
	.fallocate = slow_fallocate,
};

/* The first word that is no option is the directory. */
static int
take_directory(void *data, const char *word, int key, struct fuse_args *args)
{
	if (key != FUSE_OPT_KEY_NONOPT || options.directory != NULL)
		return 1;
	options.directory = realpath(word, NULL);
	if (options.directory == NULL)
		perror(word);
	return options.directory == NULL ? -1 : 0;
}

static int
become(const char *name)
{
	struct passwd *account = getpwnam(name);

	if (account == NULL || setgroups(0, NULL) < 0 ||
		setgid(account->pw_gid) < 0 || setuid(account->pw_uid) < 0)
	{
		fprintf(stderr, "slowdisk: cannot become %s\n", name);
		return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
	struct fuse_cmdline_opts command;
	struct fuse_loop_config *loop;
	struct fuse *fuse;
	int			status = 1;

	if (fuse_opt_parse(&args, &options, option_spec, take_directory) < 0 ||
		fuse_parse_cmdline(&args, &command) < 0)
		return 1;
	if (options.directory == NULL || command.mountpoint == NULL)
	{
		fprintf(stderr, "usage: slowdisk DIRECTORY MOUNTPOINT [-o OPTIONS]\n");
		return 1;
	}
	root = open(options.directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
	{
		perror(options.directory);
		return 1;
	}

	/* modes are the caller's business */
	umask(0);

	fuse = fuse_new(&args, &operations, sizeof(operations), NULL);
	if (fuse == NULL || fuse_mount(fuse, command.mountpoint) != 0)
		return 1;
	if ((options.account == NULL || become(options.account) == 0) &&
		fuse_daemonize(command.foreground) == 0 &&
		fuse_set_signal_handlers(fuse_get_session(fuse)) == 0)
	{
		loop = fuse_loop_cfg_create();
		fuse_loop_cfg_set_max_threads(loop, MAX_THREADS);
		fuse_loop_cfg_set_idle_threads(loop, MAX_THREADS);
		status = fuse_loop_mt(fuse, loop) == 0 ? 0 : 1;
		fuse_loop_cfg_destroy(loop);
		fuse_remove_signal_handlers(fuse_get_session(fuse));
	}
	fuse_unmount(fuse);
	fuse_destroy(fuse);
	return status;
}

/*-------------------------------------------------------------------------
 *
 * requests.c
 *	  What the kernel asks.
 *
 * A request is judged first, and waits as long as it has to, or fails.  Then it
 * enters, if it changes something, which fails once power is lost; writes down
 * what is needed to undo it, does its work in the directory below, and leaves.
 * A sync begins before it waits: what is written meanwhile is none of its.
 *
 * What is open below goes through the page cache, whatever was asked for: the
 * buffers that we get are not aligned.
 *
 * Since nobody else changes the directory below, the kernel may keep names and
 * attributes for as long as it likes.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <dirent.h>
#include <linux/falloc.h>
#include <sys/statvfs.h>

/* requests that the kernel may have given us and not waited for */
#define MAX_BACKGROUND	256

/* for which the kernel may keep what we tell it, in seconds */
#define FOREVER			86400.0

static Node *
node_of(fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? node_root() : (Node *) (uintptr_t) ino;
}

/* Judged, waited, and entered: 0, or why not. */
static int
enter(const Verdict *verdict)
{
	if (!serve_delay(verdict))
		return EIO;
	if (verdict->error != 0)
		return verdict->error;
	if (!power_enter())
		return EIO;
	names_make_room();
	data_make_room();
	return 0;
}

/* The same for a change of names. */
static int
enter_names(Operation operation, Node *directory, const char *name,
			Node *other, const char *other_name)
{
	Verdict		verdict = judge_name(operation, directory, name, other,
									 other_name);
	int			error;

	if (name_is_hidden(directory, name) ||
		(other != NULL && name_is_hidden(other, other_name)))
		return EPERM;
	error = enter(&verdict);
	if (error == 0)
		names_lock();
	return error;
}

static void
leave_names(void)
{
	names_unlock();
	power_leave();
}

/* Tell the kernel of a name, or an error; it refers to the node from now on. */
static void
reply_entry(fuse_req_t request, int error, Node *node,
			const struct stat *attributes)
{
	struct fuse_entry_param entry = {
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};

	if (error != 0 && error != ENOENT)
	{
		fuse_reply_err(request, error);
		return;
	}
	if (error == 0)
	{
		entry.ino = (uintptr_t) node;
		entry.attr = *attributes;
	}
	if (fuse_reply_entry(request, &entry) < 0 && error == 0)
		node_release(node, 1);
}

static void
reply_attributes(fuse_req_t request, int error, Node *node)
{
	struct stat attributes;

	if (error == 0)
		error = node_attributes(node, &attributes);
	if (error == 0)
		fuse_reply_attr(request, &attributes, FOREVER);
	else
		fuse_reply_err(request, error);
}

/* ------------------------------------------------------------------------
 * Names and attributes
 * ------------------------------------------------------------------------
 */

static void
do_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	Node	   *directory = node_of(parent);
	Node	   *node = NULL;
	struct stat attributes;
	int			error;

	if (power_is_lost())
		error = EIO;
	else if (name_is_hidden(directory, name))
		error = ENOENT;
	else
		error = node_get(directory, name, &node, &attributes);
	reply_entry(request, error, node, &attributes);
}

static void
do_forget(fuse_req_t request, fuse_ino_t ino, uint64_t references)
{
	node_release(node_of(ino), references);
	fuse_reply_none(request);
}

static void
do_forget_multi(fuse_req_t request, size_t count,
				struct fuse_forget_data *forgotten)
{
	for (size_t i = 0; i < count; i++)
		node_release(node_of(forgotten[i].ino), forgotten[i].nlookup);
	fuse_reply_none(request);
}

static void
do_getattr(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	reply_attributes(request, power_is_lost() ? EIO : 0, node_of(ino));
}

/* The file becomes longer or shorter. */
static int
set_size(Node *node, off_t size)
{
	Verdict		verdict = judge(OP_TRUNCATE, node, 0, false);
	int			error = enter(&verdict);

	if (error != 0)
		return error;
	error = node_open(node, true);
	if (error != 0)
	{
		power_leave();
		return error;
	}
	node_lock(node);
	error = charge_file(node, size);
	if (error == 0)
		error = data_change_size(node, size);
	if (error == 0 && ftruncate(node->fd, size) < 0)
		error = errno;
	if (error == 0)
	{
		node->size = size;
		charge_truncated(node);
		data_truncated(node, size);
	}
	node_unlock(node);
	node_close(node);
	power_leave();
	return error;
}

static int
set_times(Node *node, const struct stat *attributes, int which)
{
	struct timespec times[2] = {attributes->st_atim, attributes->st_mtim};

	if (which & FUSE_SET_ATTR_ATIME_NOW)
		times[0].tv_nsec = UTIME_NOW;
	else if ((which & FUSE_SET_ATTR_ATIME) == 0)
		times[0].tv_nsec = UTIME_OMIT;
	if (which & FUSE_SET_ATTR_MTIME_NOW)
		times[1].tv_nsec = UTIME_NOW;
	else if ((which & FUSE_SET_ATTR_MTIME) == 0)
		times[1].tv_nsec = UTIME_OMIT;
	return utimensat(node->handle, "", times, AT_EMPTY_PATH) < 0 ? errno : 0;
}

static void
do_setattr(fuse_req_t request, fuse_ino_t ino, struct stat *attributes,
		   int which, struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);
	char		path[64];
	int			error = power_is_lost() ? EIO : 0;

	if (error == 0 && (which & FUSE_SET_ATTR_MODE))
	{
		snprintf(path, sizeof(path), "/proc/self/fd/%d", node->handle);
		if (chmod(path, attributes->st_mode) < 0)
			error = errno;
	}
	if (error == 0 && (which & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) &&
		fchownat(node->handle, "",
				 which & FUSE_SET_ATTR_UID ? attributes->st_uid : (uid_t) -1,
				 which & FUSE_SET_ATTR_GID ? attributes->st_gid : (gid_t) -1,
				 AT_EMPTY_PATH) < 0)
		error = errno;
	if (error == 0 && (which & FUSE_SET_ATTR_SIZE))
		error = set_size(node, attributes->st_size);
	if (error == 0 && (which & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)))
		error = set_times(node, attributes, which);
	reply_attributes(request, error, node);
}

static void
do_readlink(fuse_req_t request, fuse_ino_t ino)
{
	char		target[PATH_MAX + 1];
	ssize_t		length = power_is_lost() ? (errno = EIO, -1) :
		readlinkat(node_of(ino)->handle, "", target, sizeof(target) - 1);

	if (length < 0)
	{
		fuse_reply_err(request, errno);
		return;
	}
	target[length] = '\0';
	fuse_reply_readlink(request, target);
}

/* A name was made, or not; find out what has it.  Leaves. */
static int
made(int result, Node *directory, const char *name, Node **node,
	 struct stat *attributes)
{
	int			error = result < 0 ? errno : 0;

	if (error == 0)
		error = node_get(directory, name, node, attributes);
	if (error == 0)
		names_added(directory, name, *node);
	leave_names();
	return error == ENOENT ? EIO : error;
}

static void
do_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		 dev_t device)
{
	Node	   *directory = node_of(parent);
	Node	   *node;
	struct stat attributes;
	int			error = enter_names(OP_CREATE, directory, name, NULL, NULL);

	if (error == 0)
		error = made(mknodat(directory->handle, name, mode, device),
					 directory, name, &node, &attributes);
	reply_entry(request, error, node, &attributes);
}

static void
do_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	Node	   *directory = node_of(parent);
	Node	   *node;
	struct stat attributes;
	int			error = enter_names(OP_CREATE, directory, name, NULL, NULL);

	if (error == 0)
		error = made(mkdirat(directory->handle, name, mode),
					 directory, name, &node, &attributes);
	reply_entry(request, error, node, &attributes);
}

static void
do_symlink(fuse_req_t request, const char *target, fuse_ino_t parent,
		   const char *name)
{
	Node	   *directory = node_of(parent);
	Node	   *node;
	struct stat attributes;
	int			error = enter_names(OP_CREATE, directory, name, NULL, NULL);

	if (error == 0)
		error = made(symlinkat(target, directory->handle, name),
					 directory, name, &node, &attributes);
	reply_entry(request, error, node, &attributes);
}

static void
do_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent,
		const char *name)
{
	Node	   *directory = node_of(parent);
	Node	   *node;
	struct stat attributes;
	char		path[64];
	int			error = enter_names(OP_CREATE, directory, name, NULL, NULL);

	if (error == 0)
	{
		snprintf(path, sizeof(path), "/proc/self/fd/%d", node_of(ino)->handle);
		error = made(linkat(AT_FDCWD, path, directory->handle, name,
							AT_SYMLINK_FOLLOW),
					 directory, name, &node, &attributes);
	}
	reply_entry(request, error, node, &attributes);
}

static void
remove_name(fuse_req_t request, fuse_ino_t parent, const char *name,
			bool is_directory)
{
	Node	   *directory = node_of(parent);
	int			error = enter_names(OP_REMOVE, directory, name, NULL, NULL);

	if (error == 0)
	{
		error = names_remove(directory, name, is_directory);
		leave_names();
	}
	fuse_reply_err(request, error);
}

static void
do_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	remove_name(request, parent, name, false);
}

static void
do_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	remove_name(request, parent, name, true);
}

static void
do_rename(fuse_req_t request, fuse_ino_t from, const char *from_name,
		  fuse_ino_t to, const char *to_name, unsigned int flags)
{
	int			error = enter_names(OP_RENAME, node_of(from), from_name,
									node_of(to), to_name);

	if (error == 0)
	{
		error = names_rename(node_of(from), from_name, node_of(to), to_name,
							 flags);
		leave_names();
	}
	fuse_reply_err(request, error);
}

/* ------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------
 */

/* What can be undone of it may come to an end. */
static void
close_file(Node *node)
{
	power_hold();
	node_close(node);
	power_leave();
}

static void
set_caching(struct fuse_file_info *file)
{
	file->direct_io = settings.uncached;
	file->keep_cache = !settings.uncached;
}

static void
do_open(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);
	Verdict		verdict = judge(OP_OPEN, node, 0, false);
	int			error = !serve_delay(&verdict) ? EIO : verdict.error;

	if (error == 0)
		error = node_open(node, (file->flags & O_ACCMODE) != O_RDONLY);
	if (error != 0)
	{
		fuse_reply_err(request, error);
		return;
	}
	set_caching(file);
	if (fuse_reply_open(request, file) < 0)
		close_file(node);
}

/* Only asked for a name that is not there. */
static void
do_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		  struct fuse_file_info *file)
{
	Node	   *directory = node_of(parent);
	Node	   *node = NULL;
	struct fuse_entry_param entry = {
		.attr_timeout = FOREVER,
		.entry_timeout = FOREVER,
	};
	int			fd = -1;
	int			error = enter_names(OP_CREATE, directory, name, NULL, NULL);

	if (error == 0)
	{
		fd = openat(directory->handle, name,
					O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		error = made(fd, directory, name, &node, &entry.attr);
	}
	if (error != 0)
	{
		if (fd >= 0)
			close(fd);
		fuse_reply_err(request, error);
		return;
	}
	node_made(node, fd);
	entry.ino = (uintptr_t) node;
	set_caching(file);
	if (fuse_reply_create(request, &entry, file) < 0)
	{
		close_file(node);
		node_release(node, 1);
	}
}

static void
do_release(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	close_file(node_of(ino));
	fuse_reply_err(request, 0);
}

static void
do_read(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);

	/*
	 * The page cache would take a short read for the end of the file, and it
	 * reads from any file by posix_fadvise() or through a memory map.  Nobody
	 * owns such a read, while a system call's owner is a process.
	 */
	bool		shortable = settings.uncached && file->lock_owner != 0;
	Verdict		verdict = judge(OP_READ, node, size, shortable);
	int			error = !serve_delay(&verdict) ? EIO : verdict.error;
	char	   *buffer = NULL;
	ssize_t		length = 0;

	if (error == 0 && (buffer = malloc(verdict.size)) == NULL)
		error = ENOMEM;
	if (error == 0 &&
		(length = pread(node->fd, buffer, verdict.size, offset)) < 0)
		error = errno;

	/* it may be what has been restored */
	if (error == 0 && power_is_lost())
		error = EIO;
	if (error == 0)
		fuse_reply_buf(request, buffer, length);
	else
		fuse_reply_err(request, error);
	free(buffer);
}

static void
do_write(fuse_req_t request, fuse_ino_t ino, const char *buffer, size_t size,
		 off_t offset, struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);

	/* The kernel would make an error of a short direct write. */
	bool		shortable = settings.uncached || !(file->flags & O_DIRECT);
	Verdict		verdict = judge(OP_WRITE, node, size, shortable);
	int			error = enter(&verdict);
	ssize_t		length = 0;

	if (error != 0)
	{
		fuse_reply_err(request, error);
		return;
	}
	pthread_rwlock_rdlock(&node->writing);
	pthread_mutex_lock(&node->lock);
	error = charge_file(node, offset + verdict.size);
	if (error == 0)
		error = data_change(node, offset, verdict.size, true);
	pthread_mutex_unlock(&node->lock);
	if (error == 0 &&
		(length = pwrite(node->fd, buffer, verdict.size, offset)) < 0)
		error = errno;
	if (error == 0)
	{
		pthread_mutex_lock(&node->lock);
		node->size = Max(node->size, offset + length);
		pthread_mutex_unlock(&node->lock);
	}
	pthread_rwlock_unlock(&node->writing);
	if (error == 0 && (file->flags & (O_DSYNC | O_SYNC)))
	{
		node_lock(node);
		data_durable(node);
		node_unlock(node);
		names_sync(NULL, names_now());
	}
	power_leave();
	if (error == 0)
		fuse_reply_write(request, length);
	else
		fuse_reply_err(request, error);
}

static void
do_fallocate(fuse_req_t request, fuse_ino_t ino, int mode, off_t offset,
			 off_t length, struct fuse_file_info *file)
{
	const int	changing = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
	Node	   *node = node_of(ino);
	Verdict		verdict = judge(OP_FALLOCATE, node, 0, false);
	int			error = enter(&verdict);
	off_t		size;

	if (error != 0)
	{
		fuse_reply_err(request, error);
		return;
	}
	node_lock(node);
	size = mode & FALLOC_FL_KEEP_SIZE ? node->size :
		Max(node->size, offset + length);
	if (mode & ~(changing | FALLOC_FL_KEEP_SIZE))
		error = EOPNOTSUPP;
	if (error == 0 && (mode & FALLOC_FL_PUNCH_HOLE) == 0)
		error = charge_file(node, offset + length);
	if (error == 0 && (mode & changing) && offset < node->size)
		error = data_change(node, offset, Min(length, node->size - offset),
							false);
	if (error == 0 && size != node->size)
		error = data_change_size(node, size);
	if (error == 0 && fallocate(node->fd, mode, offset, length) < 0)
		error = errno;
	if (error == 0)
		node->size = size;
	node_unlock(node);
	power_leave();
	fuse_reply_err(request, error);
}

static void
do_fsync(fuse_req_t request, fuse_ino_t ino, int datasync,
		 struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);
	Verdict		verdict = judge_sync(node, datasync);
	uint64_t	until = names_now();
	int			error;

	if (!data_sync_begin(node))
	{
		fuse_reply_err(request, EIO);
		return;
	}
	error = !serve_delay(&verdict) ? EIO : verdict.error;
	if (error == 0 && (datasync ? fdatasync(node->fd) : fsync(node->fd)) < 0)
		error = errno;
	if (power_enter())
	{
		data_sync_end(node, error, verdict.lose);
		if (error == 0)
			names_sync(NULL, until);
		power_leave();
	}
	else
	{
		error = EIO;
		data_sync_end(node, error, false);
	}
	fuse_reply_err(request, error);
}

/* ------------------------------------------------------------------------
 * Directories
 * ------------------------------------------------------------------------
 */

static DIR *
directory_of(struct fuse_file_info *file)
{
	return (DIR *) (uintptr_t) file->fh;
}

static void
do_opendir(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	int			fd = power_is_lost() ? (errno = EIO, -1) :
		openat(node_of(ino)->handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR		   *directory = fd < 0 ? NULL : fdopendir(fd);

	if (directory == NULL)
	{
		fuse_reply_err(request, errno);
		return;
	}
	file->fh = (uintptr_t) directory;
	if (fuse_reply_open(request, file) < 0)
		closedir(directory);
}

static void
do_readdir(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		   struct fuse_file_info *file)
{
	DIR		   *directory = directory_of(file);
	char	   *buffer = malloc(size);
	size_t		used = 0;
	struct dirent *entry;

	if (buffer == NULL || power_is_lost())
	{
		free(buffer);
		fuse_reply_err(request, EIO);
		return;
	}
	if (offset == 0)
		rewinddir(directory);
	else
		seekdir(directory, offset);
	while ((entry = readdir(directory)) != NULL)
	{
		struct stat attributes = {
			.st_ino = entry->d_ino,
			.st_mode = (mode_t) entry->d_type << 12,
		};
		size_t		length;

		if (name_is_hidden(node_of(ino), entry->d_name))
			continue;
		length = fuse_add_direntry(request, buffer + used, size - used,
								   entry->d_name, &attributes, entry->d_off);
		if (length > size - used)
			break;
		used += length;
	}
	fuse_reply_buf(request, buffer, used);
	free(buffer);
}

static void
do_releasedir(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	closedir(directory_of(file));
	fuse_reply_err(request, 0);
}

static void
do_fsyncdir(fuse_req_t request, fuse_ino_t ino, int datasync,
			struct fuse_file_info *file)
{
	Node	   *node = node_of(ino);
	Verdict		verdict = judge(OP_FSYNC, node, 0, false);
	uint64_t	until = names_now();
	int			error = !serve_delay(&verdict) ? EIO : verdict.error;

	if (error == 0 && fsync(dirfd(directory_of(file))) < 0)
		error = errno;
	if (error == 0 && !power_enter())
		error = EIO;
	else if (error == 0)
	{
		names_sync(node, until);
		power_leave();
	}
	fuse_reply_err(request, error);
}

static void
do_statfs(fuse_req_t request, fuse_ino_t ino)
{
	struct statvfs statistics;
	uint64_t	limit = quota_limit();

	if (power_is_lost() || fstatvfs(root, &statistics) < 0)
	{
		fuse_reply_err(request, EIO);
		return;
	}
	if (limit != UINT64_MAX)
	{
		uint64_t	left = limit - Min(limit, quota_used());

		statistics.f_blocks = limit / statistics.f_frsize;
		statistics.f_bfree = Min(statistics.f_bfree, left / statistics.f_frsize);
		statistics.f_bavail = Min(statistics.f_bavail, statistics.f_bfree);
	}
	fuse_reply_statfs(request, &statistics);
}

/*
 * Nobody but the kernel changes files, so it need not look whether they have
 * changed.  Opening does not truncate, such that there is one way to do it.
 */
static void
do_init(void *userdata, struct fuse_conn_info *connection)
{
	connection->max_background = MAX_BACKGROUND;
	connection->congestion_threshold = MAX_BACKGROUND;
	connection->want &= ~(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_AUTO_INVAL_DATA);
}

const struct fuse_lowlevel_ops requests = {
	.init = do_init,
	.lookup = do_lookup,
	.forget = do_forget,
	.forget_multi = do_forget_multi,
	.getattr = do_getattr,
	.setattr = do_setattr,
	.readlink = do_readlink,
	.mknod = do_mknod,
	.mkdir = do_mkdir,
	.symlink = do_symlink,
	.link = do_link,
	.unlink = do_unlink,
	.rmdir = do_rmdir,
	.rename = do_rename,
	.open = do_open,
	.create = do_create,
	.release = do_release,
	.read = do_read,
	.write = do_write,
	.fallocate = do_fallocate,
	.fsync = do_fsync,
	.opendir = do_opendir,
	.readdir = do_readdir,
	.releasedir = do_releasedir,
	.fsyncdir = do_fsyncdir,
	.statfs = do_statfs,
};

/*-------------------------------------------------------------------------
 *
 * nodes.c
 *	  Files and directories that the kernel knows, and the space they use.
 *
 * A node stands for an inode of the directory below, and keeps it open such
 * that its number is not given to another one.  Nobody but us changes that
 * directory.
 *
 * All who have a file open share a file descriptor, for reading and writing if
 * that is permitted, as data.c reads and restores what others only write.
 *
 * The space that a file uses is its length in blocks, holes included, and while
 * it is open also what was allocated past its end.  It is given back when the
 * last name is gone and nobody has it open, as a user expects it, no matter
 * what we keep to undo that.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <dirent.h>

#define BUCKETS		65536

/* Protects the table, references, and places. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static Node *table[BUCKETS];

static Node root_node;
static dev_t device;

static _Atomic uint64_t used;
static _Atomic uint64_t limit = UINT64_MAX;

Node *
node_root(void)
{
	return &root_node;
}

static uint64_t
in_blocks(off_t size)
{
	return ((uint64_t) size + BLOCK - 1) / BLOCK * BLOCK;
}

static void
node_init(Node *node, int handle, const struct stat *attributes)
{
	node->ino = attributes->st_ino;
	node->type = attributes->st_mode & S_IFMT;
	node->handle = handle;
	node->references = 1;
	node->fd = -1;
	node->writing = (pthread_rwlock_t) LOCK_INITIALIZER;
	pthread_mutex_init(&node->lock, NULL);
	pthread_cond_init(&node->synced, NULL);
}

/* Add what files below a directory use. */
static int
count_used(int parent, const char *name)
{
	int			fd = openat(parent, name,
							O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR		   *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int			error = 0;

	if (directory == NULL)
		return errno;
	while (error == 0 && (entry = readdir(directory)) != NULL)
	{
		struct stat attributes;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(fd, entry->d_name, &attributes, AT_SYMLINK_NOFOLLOW) < 0)
			error = errno;
		else if (S_ISREG(attributes.st_mode))
			used += in_blocks(attributes.st_size);
		else if (S_ISDIR(attributes.st_mode))
			error = count_used(fd, entry->d_name);
	}
	closedir(directory);
	return error;
}

int
nodes_start(void)
{
	struct stat attributes;

	if (fstat(root, &attributes) < 0)
		return errno;
	device = attributes.st_dev;
	node_init(&root_node, root, &attributes);
	table[root_node.ino % BUCKETS] = &root_node;
	return count_used(root, ".");
}

/*
 * The node of this name, with a reference for the caller, and its attributes.
 */
int
node_get(Node *directory, const char *name, Node **found,
		 struct stat *attributes)
{
	int			handle = openat(directory->handle, name,
								O_PATH | O_NOFOLLOW | O_CLOEXEC);
	Node	   *node;
	int			error = 0;

	if (handle < 0)
		return errno;
	if (fstat(handle, attributes) < 0)
		error = errno;
	else if (attributes->st_dev != device)
		error = EXDEV;
	if (error != 0)
	{
		close(handle);
		return error;
	}

	pthread_mutex_lock(&table_lock);
	node = table[attributes->st_ino % BUCKETS];
	while (node != NULL && node->ino != attributes->st_ino)
		node = node->next;
	if (node != NULL)
	{
		node->references++;
		close(handle);
	}
	else if ((node = calloc(1, sizeof(Node))) == NULL)
	{
		close(handle);
		error = ENOMEM;
	}
	else
	{
		node_init(node, handle, attributes);
		node->next = table[node->ino % BUCKETS];
		table[node->ino % BUCKETS] = node;
	}
	pthread_mutex_unlock(&table_lock);
	if (error == 0)
	{
		node_place(node, directory, name);
		if (!S_ISDIR(node->type))
			attributes->st_nlink -= node->trashed;
		*found = node;
	}
	return error;
}

void
node_hold(Node *node)
{
	pthread_mutex_lock(&table_lock);
	node->references++;
	pthread_mutex_unlock(&table_lock);
}

/* Give up references; with the last one the node is gone. */
void
node_release(Node *node, uint64_t references)
{
	Node	  **link;

	pthread_mutex_lock(&table_lock);
	while (node != NULL && (node->references -= references) == 0)
	{
		Node	   *parent = node->parent;

		link = &table[node->ino % BUCKETS];
		while (*link != node)
			link = &(*link)->next;
		*link = node->next;
		close(node->handle);
		pthread_rwlock_destroy(&node->writing);
		pthread_mutex_destroy(&node->lock);
		pthread_cond_destroy(&node->synced);
		free(node->name);
		free(node);
		node = parent;
		references = 1;
	}
	pthread_mutex_unlock(&table_lock);
}

/* It was seen there. */
void
node_place(Node *node, Node *parent, const char *name)
{
	Node	   *previous = NULL;

	pthread_mutex_lock(&table_lock);
	if (node->parent != parent || strcmp(node->name, name) != 0)
	{
		char	   *copy = strdup(name);

		if (copy != NULL)
		{
			previous = node->parent;
			free(node->name);
			node->name = copy;
			node->parent = parent;
			parent->references++;
		}
	}
	pthread_mutex_unlock(&table_lock);
	if (previous != NULL)
		node_release(previous, 1);
}

/*
 * The path of a node, or of a name in it, as seen from the root: "." for that.
 * False if it is too long.
 */
bool
node_path(Node *node, const char *name, char *path, size_t size)
{
	char	   *end = path + size;
	char	   *start = end;
	bool		fits = true;

	pthread_mutex_lock(&table_lock);
	while (fits && (name != NULL || node->parent != NULL))
	{
		const char *part = name != NULL ? name : node->name;
		size_t		length = strlen(part);

		fits = (size_t) (start - path) > length;
		if (!fits)
			break;
		start--;
		*start = start == end - 1 ? '\0' : '/';
		start -= length;
		memcpy(start, part, length);
		if (name == NULL)
			node = node->parent;
		name = NULL;
	}
	pthread_mutex_unlock(&table_lock);
	if (start == end)
		strcpy(path, ".");
	else
		memmove(path, start, end - start);
	return fits;
}

/* Names in the trash do not count. */
int
node_attributes(Node *node, struct stat *attributes)
{
	if (fstat(node->handle, attributes) < 0)
		return errno;
	if (!S_ISDIR(node->type))
		attributes->st_nlink -= node->trashed;
	return 0;
}

/* ------------------------------------------------------------------------
 * Content
 * ------------------------------------------------------------------------
 */

/* What is known by its handle only cannot be opened but through /proc. */
static int
open_content(Node *node, bool writing)
{
	char		path[64];
	struct stat attributes;
	int			fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", node->handle);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		node->writable = true;
	else if (!writing)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (node->fd >= 0)
	{
		/* Others are reading from it. */
		dup3(fd, node->fd, O_CLOEXEC);
		close(fd);
		return 0;
	}
	if (fstat(fd, &attributes) < 0)
	{
		close(fd);
		return EIO;
	}
	node->fd = fd;
	node->size = attributes.st_size;
	node->charge = in_blocks(node->size);
	return 0;
}

/* A file was made, and this is its descriptor, whatever its mode permits. */
void
node_made(Node *node, int fd)
{
	pthread_mutex_lock(&node->lock);
	node->fd = fd;
	node->writable = true;
	node->size = 0;
	node->charge = 0;
	node->opens = 1;
	pthread_mutex_unlock(&node->lock);
}

/* No write of the file is under way. */
void
node_lock(Node *node)
{
	pthread_rwlock_wrlock(&node->writing);
	pthread_mutex_lock(&node->lock);
}

void
node_unlock(Node *node)
{
	pthread_mutex_unlock(&node->lock);
	pthread_rwlock_unlock(&node->writing);
}

int
node_open(Node *node, bool writing)
{
	int			error = 0;

	pthread_mutex_lock(&node->lock);
	if (node->fd < 0 || (writing && !node->writable))
		error = open_content(node, writing);
	if (error == 0)
		node->opens++;
	pthread_mutex_unlock(&node->lock);
	return error;
}

void
node_close(Node *node)
{
	pthread_mutex_lock(&node->lock);
	node->opens--;
	data_settle(node);
	pthread_mutex_unlock(&node->lock);
	node_check_gone(node);
}

/* Nobody has the file, which is locked, open, and nothing of it is volatile. */
void
node_close_content(Node *node)
{
	if (node->fd < 0)
		return;
	charge_truncated(node);
	close(node->fd);
	node->fd = -1;
	node->writable = false;
}

/* ------------------------------------------------------------------------
 * Space
 * ------------------------------------------------------------------------
 */

static void
give_back(uint64_t bytes)
{
	uint64_t	before = used;

	/* Files with several names were counted as often when we began. */
	while (!atomic_compare_exchange_weak(&used, &before,
										 before - Min(before, bytes)))
		;
}

/*
 * If the last name of a file is gone, and nobody has it open, its space can be
 * used again; and if the name cannot come back, nor can the data.
 */
void
node_check_gone(Node *node)
{
	struct stat attributes;

	if (!S_ISREG(node->type))
		return;
	node_lock(node);
	if (node->opens == 0 && fstat(node->handle, &attributes) == 0)
	{
		if (attributes.st_nlink == node->trashed && !node->gone)
		{
			give_back(node->fd < 0 ? in_blocks(attributes.st_size) :
					  node->charge);
			node->gone = true;
		}
		if (attributes.st_nlink == 0)
			data_durable(node);
	}
	node_unlock(node);
}

/* The file, which is locked, will use space up to there. */
int
charge_file(Node *node, off_t end)
{
	uint64_t	charge = in_blocks(end);
	uint64_t	more = charge - Min(charge, node->charge);

	if (more == 0)
		return 0;
	if ((used += more) > limit)
	{
		used -= more;
		return ENOSPC;
	}
	node->charge = charge;
	return 0;
}

/* It uses none past its end. */
void
charge_truncated(Node *node)
{
	uint64_t	charge = in_blocks(node->size);

	if (node->charge > charge && !node->gone)
	{
		give_back(node->charge - charge);
		node->charge = charge;
	}
}

void
quota_set(uint64_t bytes)
{
	limit = bytes;
}

uint64_t
quota_limit(void)
{
	return limit;
}

uint64_t
quota_used(void)
{
	return used;
}

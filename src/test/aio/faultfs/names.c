/*-------------------------------------------------------------------------
 *
 * names.c
 *	  Changes of names, and how to undo them.
 *
 * The directory below always has the current names.  A name that is removed,
 * or replaced, is moved to the trash, which is in HIDDEN, and stays there
 * until the removal is durable.  What can be undone is in a list, the oldest
 * change first.
 *
 * With metadata=ordered a sync of whatever file or directory makes durable all
 * changes that were complete when it began, and losing power undoes the newest
 * ones, as on a file system with a journal.  That files became shorter belongs
 * to it: once that is durable, their old content is gone.
 *
 * With metadata=strict a sync of a directory makes durable what has changed in
 * it, and losing power undoes any others.  Even then a change is made or not
 * made as a whole, and not without those that it follows from:
 *
 *	 - those of the same name, and of the same file or directory;
 *	 - those in a directory that it has removed, and that had to be empty;
 *	 - if it moves a directory, earlier moves of directories, such that none
 *	   gets inside itself;
 *	 - that the directory in which it happened was made.
 *
 * Only the last of them can be undone although the change is durable: then all
 * in that directory is gone, which nobody has synced into its parent.  But if
 * something was moved there it is durable, too, as that must not be lost.
 *
 * Invariant: what is in the list has happened in this order, and can be undone
 * in the opposite order.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <dirent.h>

/* Older changes are made durable by themselves. */
#define MAX_CHANGES		8192

typedef enum Kind
{
	ADDED,						/* node has this name in the directory */
	REMOVED,					/* it had */
	RENAMED,					/* it has the other name in the other one */
	EXCHANGED,					/* so, and replaced has the name it had */
	TRUNCATED					/* it became shorter; no names */
} Kind;

typedef struct Change
{
	struct Change *next;
	uint64_t	number;
	Kind		kind;
	Node	   *node;
	Node	   *directory;
	char	   *name;
	Node	   *to;
	char	   *to_name;
	Node	   *replaced;		/* what had the other name */
	uint64_t	trash;			/* where what was removed or replaced is, or 0 */
	uint64_t	bytes;			/* that it keeps from being reused */
	uint64_t	generation;		/* of data.c, that became shorter */
	off_t		size;
	bool		chosen;
	bool		anchored;		/* so must be where it happened */
} Change;

/* One change at a time.  The list lock is for those who only make durable. */
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Change *first;
static Change **last = &first;
static uint64_t count;
static uint64_t trash_bytes;
static uint64_t last_number;
static uint64_t last_trash;

void
names_lock(void)
{
	pthread_mutex_lock(&changing);
}

void
names_unlock(void)
{
	pthread_mutex_unlock(&changing);
}

bool
name_is_hidden(const Node *directory, const char *name)
{
	return directory == node_root() && strcmp(name, HIDDEN) == 0;
}

static void
refer(Node *node)
{
	if (node != NULL)
		node_hold(node);
}

static void
release(Node *node)
{
	if (node != NULL)
		node_release(node, 1);
}

/* Without memory we cannot keep what we promise. */
static char *
copy_name(const char *name)
{
	char	   *copy = name == NULL ? NULL : strdup(name);

	if (copy == NULL && name != NULL)
		abort();
	return copy;
}

/* Append a change; what it refers to is referred to once more. */
static void
record(const Change *change)
{
	Change	   *copy;

	if (settings.durable)
		return;
	copy = malloc(sizeof(Change));
	if (copy == NULL)
		abort();
	*copy = *change;
	refer(copy->node);
	refer(copy->directory);
	refer(copy->to);
	refer(copy->replaced);
	copy->name = copy_name(change->name);
	copy->to_name = copy_name(change->to_name);
	copy->next = NULL;

	pthread_mutex_lock(&list_lock);
	copy->number = ++last_number;
	*last = copy;
	last = &copy->next;
	count++;
	trash_bytes += copy->bytes;
	pthread_mutex_unlock(&list_lock);
}

/* Take a change out of the list, which is locked. */
static Change *
take(Change **link)
{
	Change	   *change = *link;

	*link = change->next;
	if (*link == NULL)
		last = link;
	change->next = NULL;
	count--;
	trash_bytes -= change->bytes;
	return change;
}

static void
forget(Change *change)
{
	release(change->node);
	release(change->directory);
	release(change->to);
	release(change->replaced);
	free(change->name);
	free(change->to_name);
	free(change);
}

static void
trash_name(uint64_t trash, char *name, size_t size)
{
	snprintf(name, size, "%llu", (unsigned long long) trash);
}

/*
 * Move something to the trash.  The space that this keeps is that of files
 * without another name.
 */
static int
discard(Node *directory, const char *name, Node *node, Change *change)
{
	char		trash[32];
	struct stat attributes;

	change->trash = ++last_trash;
	trash_name(change->trash, trash, sizeof(trash));
	if (renameat(directory->handle, name, hidden, trash) < 0)
		return errno;
	node->trashed++;
	if (S_ISREG(node->type) && fstat(node->handle, &attributes) == 0 &&
		attributes.st_nlink == node->trashed)
		change->bytes = attributes.st_size;
	return 0;
}

/* A change is durable: nobody will ask for what it has removed. */
static void
make_durable(Change *change)
{
	Node	   *removed = change->kind == REMOVED ? change->node :
		change->replaced;
	char		trash[32];

	if (change->kind == TRUNCATED)
		data_truncation_durable(change->node, change->generation, change->size);
	if (change->trash != 0)
	{
		trash_name(change->trash, trash, sizeof(trash));
		removed->trashed--;
		unlinkat(hidden, trash, S_ISDIR(removed->type) ? AT_REMOVEDIR : 0);
		node_check_gone(removed);
	}
	forget(change);
}

/* ------------------------------------------------------------------------
 * Which change follows from which
 * ------------------------------------------------------------------------
 */

static bool
touches(const Change *change, const Node *directory)
{
	return directory != NULL &&
		(change->directory == directory || change->to == directory);
}

static bool
same_name(Node *directory, const char *name, Node *other, const char *other_name)
{
	return directory != NULL && directory == other &&
		strcmp(name, other_name) == 0;
}

static bool
same_node(const Node *node, const Change *change)
{
	return node != NULL && (change->node == node || change->replaced == node);
}

static bool
moves_directory(const Change *change)
{
	return (change->kind == RENAMED && S_ISDIR(change->node->type)) ||
		(change->kind == EXCHANGED && (S_ISDIR(change->node->type) ||
									   S_ISDIR(change->replaced->type)));
}

/* Could the later one not have been made without the earlier one? */
static bool
requires(const Change *later, const Change *earlier)
{
	const Node *removed = later->kind == REMOVED ? later->node :
		later->kind == RENAMED ? later->replaced : NULL;

	return same_name(later->directory, later->name,
					 earlier->directory, earlier->name) ||
		same_name(later->directory, later->name, earlier->to, earlier->to_name) ||
		same_name(later->to, later->to_name,
				  earlier->directory, earlier->name) ||
		same_name(later->to, later->to_name, earlier->to, earlier->to_name) ||
		same_node(later->node, earlier) || same_node(later->replaced, earlier) ||
		touches(earlier, removed) ||
		(moves_directory(later) && moves_directory(earlier));
}

/* Did the earlier one make the directory of the later one? */
static bool
happened_in(const Change *later, const Change *earlier)
{
	return earlier->kind == ADDED && touches(later, earlier->node);
}

/* ------------------------------------------------------------------------
 * Changes
 * ------------------------------------------------------------------------
 */

void
names_added(Node *directory, const char *name, Node *node)
{
	Change		change = {.kind = ADDED};

	change.node = node;
	change.directory = directory;
	change.name = (char *) name;
	record(&change);
}

/* The file became shorter, in this generation of its data. */
void
names_truncated(Node *node, uint64_t generation, off_t size)
{
	Change		change = {.kind = TRUNCATED};

	change.node = node;
	change.generation = generation;
	change.size = size;
	record(&change);
}

static int
check_empty(Node *directory)
{
	int			fd = openat(directory->handle, ".",
							O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR		   *entries = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int			error = 0;

	if (entries == NULL)
		return errno;
	while (error == 0 && (entry = readdir(entries)) != NULL)
	{
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			error = ENOTEMPTY;
	}
	closedir(entries);
	return error;
}

/*
 * With strict metadata, what was never durable and has nothing to do with any
 * other change leaves no trace when it is removed: temporary files, of which
 * there may be many between syncs of their directory.
 */
static Change *
take_trace(Node *directory, const char *name, Node *node)
{
	Change	  **found = NULL;
	Change	   *taken = NULL;
	bool		alone = settings.strict;

	pthread_mutex_lock(&list_lock);
	for (Change **link = &first; alone && *link != NULL; link = &(*link)->next)
	{
		if (!same_node(node, *link) && !touches(*link, node))
			continue;
		alone = found == NULL && (*link)->kind == ADDED &&
			same_name(directory, name, (*link)->directory, (*link)->name);
		found = link;
	}
	if (alone && found != NULL)
		taken = take(found);
	pthread_mutex_unlock(&list_lock);
	return taken;
}

int
names_remove(Node *directory, const char *name, bool is_directory)
{
	Change		change = {.kind = REMOVED};
	Change	   *trace = NULL;
	struct stat attributes;
	int			error;

	change.directory = directory;
	change.name = (char *) name;
	error = node_get(directory, name, &change.node, &attributes);
	if (error != 0)
		return error;
	if (is_directory != S_ISDIR(change.node->type))
		error = is_directory ? ENOTDIR : EISDIR;
	else if (is_directory)
		error = check_empty(change.node);
	if (error == 0 && (settings.durable ||
					   (trace = take_trace(directory, name,
										   change.node)) != NULL))
	{
		if (unlinkat(directory->handle, name,
					 is_directory ? AT_REMOVEDIR : 0) < 0)
			error = errno;
		if (trace != NULL)
			forget(trace);
	}
	else if (error == 0)
	{
		error = discard(directory, name, change.node, &change);
		if (error == 0)
			record(&change);
	}
	if (error == 0)
		node_check_gone(change.node);
	node_release(change.node, 1);
	return error;
}

static int
exchange(Change *change)
{
	return renameat2(change->directory->handle, change->name,
					 change->to->handle, change->to_name,
					 RENAME_EXCHANGE) < 0 ? errno : 0;
}

/* Move, and what is there to the trash. */
static int
replace(Change *change)
{
	bool		discards = change->replaced != NULL && !settings.durable;
	char		trash[32];
	int			error = 0;

	if (discards && S_ISDIR(change->replaced->type))
		error = check_empty(change->replaced);
	if (error == 0 && discards)
		error = discard(change->to, change->to_name, change->replaced, change);
	if (error != 0)
		return error;
	if (renameat(change->directory->handle, change->name,
				 change->to->handle, change->to_name) == 0)
		return 0;
	error = errno;
	if (discards)
	{
		trash_name(change->trash, trash, sizeof(trash));
		renameat(hidden, trash, change->to->handle, change->to_name);
		change->replaced->trashed--;
	}
	return error;
}

int
names_rename(Node *from, const char *from_name, Node *to, const char *to_name,
			 unsigned int flags)
{
	Change		change = {.kind = RENAMED};
	struct stat attributes;
	int			error;

	if (flags == RENAME_EXCHANGE)
		change.kind = EXCHANGED;
	change.directory = from;
	change.name = (char *) from_name;
	change.to = to;
	change.to_name = (char *) to_name;
	if (flags != 0 && flags != RENAME_EXCHANGE && flags != RENAME_NOREPLACE)
		return EINVAL;
	error = node_get(from, from_name, &change.node, &attributes);
	if (error != 0)
		return error;
	error = node_get(to, to_name, &change.replaced, &attributes);
	if (error == 0 && flags == RENAME_NOREPLACE)
		error = EEXIST;
	else if (error == ENOENT && flags != RENAME_EXCHANGE)
		error = 0;

	/* Names of the same file stay as they are. */
	if (error == 0 && change.node != change.replaced)
	{
		error = change.kind == EXCHANGED ? exchange(&change) : replace(&change);
		if (error == 0)
		{
			record(&change);
			node_place(change.node, to, to_name);
			if (change.kind == EXCHANGED)
				node_place(change.replaced, from, from_name);
			else if (change.replaced != NULL)
				node_check_gone(change.replaced);
		}
	}
	release(change.node);
	release(change.replaced);
	return error;
}

/* ------------------------------------------------------------------------
 * What becomes durable
 * ------------------------------------------------------------------------
 */

/* Changes up to this one are complete. */
uint64_t
names_now(void)
{
	uint64_t	now;

	pthread_mutex_lock(&list_lock);
	now = last_number;
	pthread_mutex_unlock(&list_lock);
	return now;
}

/*
 * Choose those that a sync of the directory makes durable, the newest first, as
 * they need older ones.
 */
static void
choose_synced(Change *change, Node *directory, uint64_t until)
{
	Change	  **changes = malloc((count + 1) * sizeof(Change *));
	size_t		n = 0;

	if (changes == NULL)
		abort();
	for (; change != NULL && change->number <= until; change = change->next)
		changes[n++] = change;
	for (size_t i = n; i-- > 0;)
	{
		Change	   *older = changes[i];

		older->chosen = touches(older, directory);
		older->anchored = older->to != NULL;
		for (size_t j = i + 1; j < n; j++)
		{
			if (!changes[j]->chosen)
				continue;
			if (changes[j]->anchored && happened_in(changes[j], older))
				older->chosen = older->anchored = true;
			else if (requires(changes[j], older))
				older->chosen = true;
		}
	}
	free(changes);
}

/*
 * A directory, or a file if that is NULL, was synced: changes up to this one
 * are durable, or those among them that concern the directory.
 */
void
names_sync(Node *directory, uint64_t until)
{
	Change	   *taken = NULL;
	Change	  **end = &taken;

	if (settings.strict && directory == NULL)
		return;
	pthread_mutex_lock(&list_lock);
	if (settings.strict)
		choose_synced(first, directory, until);
	for (Change **link = &first; *link != NULL && (*link)->number <= until;)
	{
		if (!settings.strict || (*link)->chosen)
		{
			*end = take(link);
			end = &(*end)->next;
		}
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&list_lock);
	while (taken != NULL)
	{
		Change	   *change = taken;

		taken = change->next;
		make_durable(change);
	}
}

/* Make the oldest durable, if there are too many, or they keep too much. */
void
names_make_room(void)
{
	for (;;)
	{
		Change	   *change = NULL;

		pthread_mutex_lock(&list_lock);
		if (count > MAX_CHANGES || trash_bytes > settings.cache)
			change = take(&first);
		pthread_mutex_unlock(&list_lock);
		if (change == NULL)
			break;
		make_durable(change);
	}
}

/* ------------------------------------------------------------------------
 * Losing power
 * ------------------------------------------------------------------------
 */

static int
undo(Change *change)
{
	Node	   *removed_from = change->kind == RENAMED ? change->to :
		change->directory;
	const char *removed_name = change->kind == RENAMED ? change->to_name :
		change->name;
	char		trash[32];
	int			error = 0;

	if (change->kind == ADDED)
		error = remove_tree(change->directory->handle, change->name);
	else if (change->kind == EXCHANGED)
		error = exchange(change);
	else if (change->kind == RENAMED &&
			 renameat(change->to->handle, change->to_name,
					  change->directory->handle, change->name) < 0)
		error = errno;
	if (error == 0 && change->trash != 0)
	{
		trash_name(change->trash, trash, sizeof(trash));
		if (renameat(hidden, trash, removed_from->handle, removed_name) < 0)
			error = errno;
	}
	return error;
}

/* How many of the oldest survive, if they survive in order. */
static uint64_t
choose_prefix(const Loss *loss, Dice *dice)
{
	if (dice_chance(dice, loss->keep))
		return count;
	return dice_chance(dice, loss->keep) ? dice_throw(dice, count + 1) : 0;
}

/* Power is lost; so is what the dice do not spare.  Nobody else is inside. */
void
names_undo(Loss *loss)
{
	Dice		dice = {.stream = STREAM_NAMES};
	uint64_t	total = count;
	uint64_t	prefix = settings.strict ? 0 : choose_prefix(loss, &dice);
	Change	  **changes = malloc((total + 1) * sizeof(Change *));

	if (changes == NULL)
		abort();
	loss->changes = total;
	for (uint64_t i = 0; i < total; i++)
	{
		Change	   *change = changes[i] = take(&first);

		/* chosen are those to undo */
		change->chosen = settings.strict ? !dice_chance(&dice, loss->keep) :
			i >= prefix;
		for (uint64_t j = 0; j < i && settings.strict && !change->chosen; j++)
			change->chosen = changes[j]->chosen &&
				(requires(change, changes[j]) ||
				 happened_in(change, changes[j]));
	}
	for (uint64_t i = total; i-- > 0;)
	{
		if (!changes[i]->chosen)
			continue;
		if (loss->error == 0)
			loss->error = undo(changes[i]);
		loss->undone++;
		forget(changes[i]);
		changes[i] = NULL;
	}
	for (uint64_t i = 0; i < total; i++)
	{
		if (changes[i] != NULL)
			make_durable(changes[i]);
	}
	free(changes);
}

/* Everything is durable now.  Nobody else is inside. */
void
names_all_durable(void)
{
	while (first != NULL)
		make_durable(take(&first));
}

uint64_t
names_volatile(uint64_t *bytes)
{
	uint64_t	changes;

	pthread_mutex_lock(&list_lock);
	changes = count;
	*bytes = trash_bytes;
	pthread_mutex_unlock(&list_lock);
	return changes;
}

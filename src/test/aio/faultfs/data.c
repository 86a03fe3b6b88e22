/*-------------------------------------------------------------------------
 *
 * data.c
 *	  Changes of files' contents, and how to undo them.
 *
 * The directory below always has the current content.  What would be lost with
 * power is kept aside: before a sector that is durable changes for the first
 * time, its pre-image is copied to the spill file.  A generation is what has
 * changed since some moment at which all of the file was durable, or on its way
 * there: which sectors, their pre-images, and the size that the file had.
 *
 * A sync seals the active generation when it begins, and forgets it when it
 * has succeeded.  Whatever is written meanwhile belongs to a new generation,
 * so that a sync makes durable what was complete when it began, and nothing
 * else.  If it fails, both become one again.
 *
 * Losing power undoes generations, the newest first, unit by unit.  A unit is
 * a sector, or a block, or all that one write has changed (if writes overlap,
 * all that they have changed together).  Each survives or does not, as the
 * dice say, but for what follows from a size: what is past the end of the file
 * is not there, and if a truncation is undone, all that happened past it has
 * not happened, either.
 *
 * Invariants: low <= size.  A sector that begins below low is unchanged, or it
 * is dirty and its pre-image is in its block's slot.  One between low and size
 * was cut off: it is dirty and has its pre-image in the slot, or that was
 * zeros.  Of one past size there was nothing.  A block without a slot, and what
 * is not dirty in a slot, was zeros.
 *
 * If more than so much would be volatile, the oldest file is written back, as
 * kernels do.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "faultfs.h"

#include <sys/resource.h>

/* blocks whose state is allocated together */
#define CHUNK		512

typedef struct Block
{
	uint32_t	slot;			/* of the pre-image, or 0: it was zeros */
	uint8_t		dirty;			/* sectors that have changed */
	uint8_t		joined;			/* by a write that changed the next, too */
} Block;

struct Generation
{
	uint64_t	id;
	off_t		size;			/* of the file when it began */
	off_t		low;			/* and the smallest that it has been since */
	size_t		nchunks;
	Block	  **chunks;
};

/* A file without a name, in which pre-images have slots, numbered from 1. */
static int	spill;
static pthread_mutex_t spill_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t *free_slots;
static size_t nfree;
static size_t free_capacity;
static uint32_t last_slot;

/* files that have generations, the oldest first; each is referred to */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static Node *oldest;
static Node *newest;
static atomic_uint_fast64_t listed;
static uint64_t listed_limit;

static atomic_uint_fast64_t dirty_blocks;
static atomic_uint_fast64_t last_id;

int
data_start(void)
{
	struct rlimit limit;

	spill = openat(hidden, "spill", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (spill < 0 || unlinkat(hidden, "spill", 0) < 0 ||
		getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return errno;

	/* A file with a generation stays open, with two descriptors. */
	listed_limit = limit.rlim_cur / 4;
	return 0;
}

/* ------------------------------------------------------------------------
 * Slots
 * ------------------------------------------------------------------------
 */

static uint32_t
take_slot(void)
{
	uint32_t	slot;

	pthread_mutex_lock(&spill_lock);
	slot = nfree > 0 ? free_slots[--nfree] : ++last_slot;
	pthread_mutex_unlock(&spill_lock);
	return slot;
}

static void
give_slot(Block *block)
{
	if (block->slot == 0)
		return;
	pthread_mutex_lock(&spill_lock);
	if (nfree == free_capacity)
	{
		size_t		capacity = Max(free_capacity * 2, 1024);
		uint32_t   *larger = realloc(free_slots, capacity * sizeof(uint32_t));

		/* Without memory for its number it is not used again. */
		if (larger != NULL)
		{
			free_slots = larger;
			free_capacity = capacity;
		}
	}
	if (nfree < free_capacity)
		free_slots[nfree++] = block->slot;
	pthread_mutex_unlock(&spill_lock);
	block->slot = 0;
}

/* The pre-image of a block, in which zeros stand for what was not there. */
static int
read_slot(const Block *block, char *image)
{
	ssize_t		length;

	if (block->slot == 0)
	{
		memset(image, 0, BLOCK);
		return 0;
	}
	length = pread(spill, image, BLOCK, (off_t) block->slot * BLOCK);
	return length == BLOCK ? 0 : length < 0 ? errno : EIO;
}

static int
write_slot(Block *block, const char *image)
{
	uint32_t	slot = block->slot != 0 ? block->slot : take_slot();
	ssize_t		length = pwrite(spill, image, BLOCK, (off_t) slot * BLOCK);
	int			error = length == BLOCK ? 0 : length < 0 ? errno : EIO;

	if (error != 0 && block->slot == 0)
	{
		Block		unused = {.slot = slot};

		give_slot(&unused);
	}
	else
		block->slot = slot;
	return error;
}

/* ------------------------------------------------------------------------
 * Generations
 * ------------------------------------------------------------------------
 */

/* The state of a block, or NULL if it has none. */
static Block *
find_block(const Generation *generation, off_t number)
{
	size_t		chunk = number / CHUNK;

	if (chunk >= generation->nchunks || generation->chunks[chunk] == NULL)
		return NULL;
	return &generation->chunks[chunk][number % CHUNK];
}

/* The same, but make it; NULL if there is no memory. */
static Block *
make_block(Generation *generation, off_t number)
{
	size_t		chunk = number / CHUNK;

	if (chunk >= generation->nchunks)
	{
		size_t		count = Max(chunk + 1, generation->nchunks * 2);
		Block	  **larger = realloc(generation->chunks, count * sizeof(Block *));

		if (larger == NULL)
			return NULL;
		memset(larger + generation->nchunks, 0,
			   (count - generation->nchunks) * sizeof(Block *));
		generation->chunks = larger;
		generation->nchunks = count;
	}
	if (generation->chunks[chunk] == NULL)
		generation->chunks[chunk] = calloc(CHUNK, sizeof(Block));
	return find_block(generation, number);
}

/* The first block from this number on that is dirty, or -1. */
static off_t
next_dirty_block(const Generation *generation, off_t number)
{
	for (size_t chunk = number / CHUNK; chunk < generation->nchunks;
		 chunk++, number = (off_t) chunk * CHUNK)
	{
		if (generation->chunks[chunk] == NULL)
			continue;
		for (size_t i = number % CHUNK; i < CHUNK; i++)
		{
			if (generation->chunks[chunk][i].dirty != 0)
				return (off_t) chunk * CHUNK + i;
		}
	}
	return -1;
}

/* The first sector from this one on that is dirty, or -1. */
static off_t
next_dirty_sector(const Generation *generation, off_t sector)
{
	off_t		number = sector / BLOCK_SECTORS;

	while ((number = next_dirty_block(generation, number)) >= 0)
	{
		sector = Max(sector, number * BLOCK_SECTORS);
		for (; sector < (number + 1) * BLOCK_SECTORS; sector++)
		{
			if (find_block(generation, number)->dirty &
				1 << sector % BLOCK_SECTORS)
				return sector;
		}
		number++;
	}
	return -1;
}

/* Of a block, only these sectors are dirty still. */
static void
clean_but(Block *block, uint8_t sectors)
{
	if (block->dirty != 0 && (block->dirty & sectors) == 0)
		dirty_blocks--;
	block->dirty &= sectors;
}

static void
drop_generation(Generation **generation)
{
	Generation *dropped = *generation;

	if (dropped == NULL)
		return;
	for (size_t chunk = 0; chunk < dropped->nchunks; chunk++)
	{
		if (dropped->chunks[chunk] == NULL)
			continue;
		for (int i = 0; i < CHUNK; i++)
		{
			clean_but(&dropped->chunks[chunk][i], 0);
			give_slot(&dropped->chunks[chunk][i]);
		}
		free(dropped->chunks[chunk]);
	}
	free(dropped->chunks);
	free(dropped);
	*generation = NULL;
}

/*
 * Call this whenever generations have come or gone, or a file was closed: the
 * list has those that have some, and files are open as long as they have, or
 * somebody else has them open.  The caller has the lock, and a reference other
 * than that of the list.
 */
void
data_settle(Node *node)
{
	bool		wanted = node->active != NULL || node->sealed != NULL;
	bool		is_listed;

	pthread_mutex_lock(&list_lock);
	is_listed = node->older != NULL || oldest == node;
	if (wanted && !is_listed)
	{
		node->older = newest;
		node->newer = NULL;
		*(newest ? &newest->newer : &oldest) = node;
		newest = node;
		listed++;
	}
	else if (!wanted && is_listed)
	{
		*(node->older ? &node->older->newer : &oldest) = node->newer;
		*(node->newer ? &node->newer->older : &newest) = node->older;
		node->older = node->newer = NULL;
		listed--;
	}
	pthread_mutex_unlock(&list_lock);

	if (wanted && !is_listed)
		node_hold(node);
	else if (!wanted && is_listed)
		node_release(node, 1);
	if (!wanted && node->opens == 0)
		node_close_content(node);
}

/* The generation to which changes belong that come now, or NULL. */
static Generation *
active_generation(Node *node)
{
	if (node->active == NULL)
	{
		node->active = calloc(1, sizeof(Generation));
		if (node->active == NULL)
			return NULL;
		node->active->id = ++last_id;
		node->active->size = node->active->low = node->size;
		data_settle(node);
	}
	return node->active;
}

/* Sectors of a block that begin before this offset in the file. */
static uint8_t
sectors_before(off_t block, off_t offset)
{
	off_t		count = (offset - block * BLOCK + SECTOR - 1) / SECTOR;

	return count <= 0 ? 0 : count >= BLOCK_SECTORS ? 0xff : (1 << count) - 1;
}

/* Copy some sectors of a block to another. */
static void
copy_sectors(char *target, const char *source, uint8_t sectors)
{
	for (int i = 0; i < BLOCK_SECTORS; i++)
	{
		if (sectors & 1 << i)
			memcpy(target + i * SECTOR, source + i * SECTOR, SECTOR);
	}
}

/* Zero what of a block lies past an offset in the file. */
static void
zero_past(char *image, off_t block, off_t offset)
{
	off_t		there = offset - block * BLOCK;

	if (there < BLOCK)
		memset(image + Max(there, 0), 0, BLOCK - Max(there, 0));
}

/* These sectors of a block will change. */
static int
change_block(Node *node, Generation *generation, off_t number, uint8_t sectors)
{
	Block	   *block = make_block(generation, number);
	uint8_t		saved;
	int			error;

	if (block == NULL)
		return ENOMEM;
	sectors &= ~block->dirty;
	saved = sectors & sectors_before(number, generation->low);
	if (saved != 0)
	{
		char		image[BLOCK];
		char		content[BLOCK];
		ssize_t		length = pread(node->fd, content, BLOCK, number * BLOCK);

		if (length < 0)
			return errno;
		memset(content + length, 0, BLOCK - length);
		error = read_slot(block, image);
		if (error != 0)
			return error;
		copy_sectors(image, content, saved);
		error = write_slot(block, image);
		if (error != 0)
			return error;
	}
	if (block->dirty == 0 && sectors != 0)
		dirty_blocks++;
	block->dirty |= sectors;
	return 0;
}

static int
change_range(Node *node, Generation *generation, off_t offset, off_t end)
{
	for (off_t number = offset / BLOCK; number * BLOCK < end; number++)
	{
		uint8_t		sectors = sectors_before(number, end) &
			~sectors_before(number, offset - offset % SECTOR);
		int			error = change_block(node, generation, number, sectors);

		if (error != 0)
			return error;
	}
	return 0;
}

/*
 * A range of the file, which is locked, will change; by a single write, or
 * else nothing keeps it from changing in part.  The lock may be released
 * before that, but no sync may begin.
 */
int
data_change(Node *node, off_t offset, off_t length, bool write)
{
	Generation *generation;
	int			error;

	if (offset < 0 || length < 0 || offset > MAX_FILE_SIZE - length)
		return EFBIG;
	if (settings.durable || length == 0)
		return 0;
	generation = active_generation(node);
	if (generation == NULL)
		return ENOMEM;
	error = change_range(node, generation, offset, offset + length);
	if (error != 0 || !write)
		return error;
	for (off_t sector = offset / SECTOR;
		 sector < (offset + length - 1) / SECTOR; sector++)
		find_block(generation, sector / BLOCK_SECTORS)->joined |=
			1 << sector % BLOCK_SECTORS;
	return 0;
}

/* The size of the file, which is locked, will change. */
int
data_change_size(Node *node, off_t size)
{
	Generation *generation;
	off_t		end;
	off_t		data;
	off_t		hole;
	int			error = 0;

	if (size > MAX_FILE_SIZE)
		return EFBIG;
	if (settings.durable)
		return 0;
	generation = active_generation(node);
	if (generation == NULL)
		return ENOMEM;

	/* Of what is cut off, what is a hole needs no pre-image. */
	end = Min(node->size, generation->low);
	for (off_t offset = size; error == 0 && offset < end; offset = hole)
	{
		data = lseek(node->fd, offset, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		data = data < 0 ? offset : data;
		hole = lseek(node->fd, data, SEEK_HOLE);
		hole = hole < 0 ? end : Min(hole, end);
		error = change_range(node, generation, data, hole);
	}
	return error;
}

/* It has become shorter. */
void
data_truncated(Node *node, off_t size)
{
	Generation *generation = node->active;

	if (generation == NULL || size >= generation->low)
		return;
	generation->low = size;
	if (!settings.strict)
		names_truncated(node, generation->id, size);
}

/* ------------------------------------------------------------------------
 * What becomes durable
 * ------------------------------------------------------------------------
 */

/* All of the file, which is locked while no write is under way. */
void
data_durable(Node *node)
{
	drop_generation(&node->active);
	drop_generation(&node->sealed);
	data_settle(node);
}

/* That a file was made shorter, in this generation, if that is there still. */
void
data_truncation_durable(Node *node, uint64_t id, off_t size)
{
	Generation *generation;

	pthread_mutex_lock(&node->lock);
	generation = node->active != NULL && node->active->id == id ?
		node->active : node->sealed;
	if (generation != NULL && generation->id == id && size < generation->size)
	{
		off_t		number = (size + BLOCK - 1) / BLOCK;

		generation->size = size;
		for (; (number = next_dirty_block(generation, number)) >= 0; number++)
			give_slot(find_block(generation, number));
	}
	pthread_mutex_unlock(&node->lock);
}

/*
 * A sync begins: what has changed so far will become durable.  Only one sync of
 * a file runs at a time.  False if there is no power.
 */
bool
data_sync_begin(Node *node)
{
	for (;;)
	{
		if (!power_enter())
			return false;
		node_lock(node);
		if (!node->syncing)
			break;
		pthread_rwlock_unlock(&node->writing);
		power_leave();
		while (node->syncing)
			pthread_cond_wait(&node->synced, &node->lock);
		pthread_mutex_unlock(&node->lock);
	}
	node->syncing = true;
	node->sealed = node->active;
	node->active = NULL;
	node_unlock(node);
	power_leave();
	return true;
}

/* What has changed since is added to what had before. */
static int
merge(Node *node)
{
	Generation *older = node->sealed;
	Generation *newer = node->active;

	for (off_t number = 0; (number = next_dirty_block(newer, number)) >= 0;
		 number++)
	{
		Block	   *source = find_block(newer, number);
		Block	   *target = make_block(older, number);
		uint8_t		saved;
		char		image[BLOCK];
		char		content[BLOCK];

		if (target == NULL)
			return ENOMEM;
		saved = source->dirty & ~target->dirty & sectors_before(number, older->low);
		if (saved != 0 && source->slot != 0)
		{
			int			error = read_slot(source, content);

			if (error == 0)
				error = read_slot(target, image);
			if (error != 0)
				return error;
			zero_past(content, number, older->low);
			copy_sectors(image, content, saved);
			error = write_slot(target, image);
			if (error != 0)
				return error;
		}
		if (target->dirty == 0)
			dirty_blocks++;
		target->dirty |= source->dirty;
		target->joined |= source->joined;
	}
	if (newer->low < newer->size)
		older->low = Min(older->low, newer->low);
	return 0;
}

/* Put pre-images back into sectors of a block. */
static int
restore_block(Node *node, const Generation *generation, off_t number,
			  uint8_t sectors, off_t limit)
{
	Block	   *block = find_block(generation, number);
	char		image[BLOCK];
	int			error = read_slot(block, image);

	if (error != 0)
		return error;
	zero_past(image, number, limit);
	for (int i = 0; i < BLOCK_SECTORS; i++)
	{
		if ((sectors & 1 << i) == 0)
			continue;
		if (pwrite(node->fd, image + i * SECTOR, SECTOR,
				   number * BLOCK + i * SECTOR) != SECTOR)
			return EIO;
	}
	return 0;
}

/*
 * What a sync that failed should have made durable is gone, but for what was
 * written again meanwhile: as in a kernel that takes a page for clean whose
 * writing has failed, once it has dropped that page.
 */
static int
lose(Node *node)
{
	Generation *generation = node->sealed;
	int			error = 0;

	for (off_t number = 0; error == 0 &&
		 (number = next_dirty_block(generation, number)) >= 0; number++)
	{
		Block	   *newer = node->active == NULL ? NULL :
			find_block(node->active, number);
		uint8_t		sectors = find_block(generation, number)->dirty &
			~(newer == NULL ? 0 : newer->dirty) &
			sectors_before(number, node->size);

		error = restore_block(node, generation, number, sectors,
							  generation->low);
	}
	if (ftruncate(node->fd, node->size) < 0 && error == 0)
		error = errno;
	return error;
}

/*
 * A sync has ended, with an error or 0.  The caller has entered, or power is
 * lost and with it all generations.
 */
void
data_sync_end(Node *node, int error, bool lose_data)
{
	node_lock(node);
	if (node->sealed != NULL && error != 0)
	{
		/* If one fails the file has what it has, as after any failed sync. */
		if (lose_data)
			(void) lose(node);
		if (node->active == NULL || merge(node) == 0)
		{
			drop_generation(&node->active);
			node->active = node->sealed;
			node->sealed = NULL;
		}
	}
	drop_generation(&node->sealed);
	node->syncing = false;
	pthread_cond_broadcast(&node->synced);
	data_settle(node);
	node_unlock(node);
}

/* Write back the oldest until no more is volatile than may be. */
void
data_make_room(void)
{
	Node	   *node;
	bool		done = false;

	while (!done && (dirty_blocks > settings.cache / BLOCK ||
					 listed > listed_limit))
	{
		pthread_mutex_lock(&list_lock);
		node = oldest;
		if (node != NULL)
			node_hold(node);
		pthread_mutex_unlock(&list_lock);
		if (node == NULL)
			break;
		node_lock(node);
		done = node->syncing;
		if (!done)
			data_durable(node);
		node_unlock(node);
		node_release(node, 1);
	}
}

/* ------------------------------------------------------------------------
 * Losing power
 * ------------------------------------------------------------------------
 */

static bool
is_joined(const Generation *generation, off_t sector)
{
	Block	   *block = find_block(generation, sector / BLOCK_SECTORS);

	return block != NULL && (block->joined & 1 << sector % BLOCK_SECTORS) != 0;
}

/* Where the unit ends to which a sector belongs. */
static off_t
unit_end(const Generation *generation, off_t sector, int torn)
{
	if (torn > 0)
		return (sector / torn + 1) * torn;
	while (is_joined(generation, sector))
		sector++;
	return sector + 1;
}

/* One of the sizes that the file has had on its way to the current one. */
static off_t
choose_size(const Generation *generation, off_t from, off_t to,
			const Loss *loss, Dice *dice)
{
	off_t		sector;

	if (from >= to || dice_chance(dice, loss->keep))
		return to;
	if (!dice_chance(dice, loss->keep))
		return from;
	sector = from / SECTOR + dice_throw(dice, (to - from) / SECTOR + 1);
	return Min(to, unit_end(generation, sector, loss->torn) * SECTOR);
}

/*
 * Undo a generation.  The older one does not undo what survives of it.  Once
 * the size is settled, because a later change of it has survived, so do
 * earlier ones.
 */
static int
undo(Node *node, Generation *generation, Generation *older, bool *size_settled,
	 Loss *loss, Dice *dice)
{
	bool		truncated = generation->low < generation->size;
	bool		restore = truncated && !*size_settled &&
		(!settings.strict || !dice_chance(dice, loss->keep));
	off_t		low = generation->low;
	off_t		limit = restore ? generation->size : low;
	off_t		size = restore ? generation->size :
		*size_settled ? node->size :
		choose_size(generation, low, node->size, loss, dice);
	int			error = 0;

	for (off_t from = 0, end;
		 (from = next_dirty_sector(generation, from)) >= 0 &&
		 from * SECTOR < size; from = end)
	{
		bool		kept;

		end = unit_end(generation, from, loss->torn);
		kept = dice_chance(dice, loss->keep) && !(restore && end * SECTOR > low);
		loss->units++;
		loss->lost += !kept;
		for (; from >= 0 && from < end && error == 0;
			 from = next_dirty_sector(generation, from + 1))
		{
			off_t		number = from / BLOCK_SECTORS;
			uint8_t		sector = 1 << from % BLOCK_SECTORS;
			Block	   *block = older == NULL ? NULL : find_block(older, number);

			if (!kept)
				error = restore_block(node, generation, number, sector, limit);
			else if (block != NULL)
				clean_but(block, ~sector);
		}
		if (error != 0)
			return error;
	}

	if (ftruncate(node->fd, size) < 0)
		return errno;
	node->size = size;
	if (older != NULL && truncated && !restore)
	{
		for (off_t number = low / BLOCK;
			 (number = next_dirty_block(older, number)) >= 0; number++)
			clean_but(find_block(older, number), sectors_before(number, low));
		older->size = Min(older->size, low);
		older->low = Min(older->low, low);
	}
	if (!restore && (truncated || size != generation->size))
		*size_settled = true;
	return 0;
}

/* Power is lost; so is what the dice do not spare.  Nobody else is inside. */
void
data_undo(Loss *loss)
{
	Dice		dice = {.stream = STREAM_DATA};
	Node	   *node;

	while ((node = oldest) != NULL)
	{
		bool		settled = false;
		struct stat attributes;
		int			error = 0;

		node_hold(node);
		node_lock(node);
		loss->files++;
		if (fstat(node->fd, &attributes) == 0 && attributes.st_nlink > 0)
		{
			if (node->active != NULL)
				error = undo(node, node->active, node->sealed, &settled, loss,
							 &dice);
			if (node->sealed != NULL && error == 0)
				error = undo(node, node->sealed, NULL, &settled, loss, &dice);
		}
		if (loss->error == 0)
			loss->error = error;
		data_durable(node);
		node_unlock(node);
		node_release(node, 1);
	}
}

/* Everything is durable now.  Nobody else is inside. */
void
data_all_durable(void)
{
	Node	   *node;

	while ((node = oldest) != NULL)
	{
		node_hold(node);
		node_lock(node);
		data_durable(node);
		node_unlock(node);
		node_release(node, 1);
	}
}

uint64_t
data_volatile(uint64_t *files)
{
	*files = listed;
	return dirty_blocks * BLOCK;
}

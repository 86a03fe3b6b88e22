/*-------------------------------------------------------------------------
 *
 * atomics.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Another process may run before each of them.  Variables change in one order
 * for all: what a processor reorders is not simulated.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_ATOMICS_H
#define SIMULATE_ATOMICS_H

typedef struct pg_atomic_uint32
{
	uint32		value;
} pg_atomic_uint32;

typedef struct pg_atomic_uint64
{
	uint64		value;
} pg_atomic_uint64;

typedef struct pg_atomic_flag
{
	bool		value;
} pg_atomic_flag;

extern void SimPoint(void);

#define pg_memory_barrier()	SimPoint()

static inline void
pg_atomic_init_u32(pg_atomic_uint32 *atomic, uint32 value)
{
	atomic->value = value;
}

static inline uint32
pg_atomic_read_u32(pg_atomic_uint32 *atomic)
{
	SimPoint();
	return atomic->value;
}

static inline void
pg_atomic_write_u32(pg_atomic_uint32 *atomic, uint32 value)
{
	SimPoint();
	atomic->value = value;
}

static inline uint32
pg_atomic_exchange_u32(pg_atomic_uint32 *atomic, uint32 value)
{
	uint32		old;

	SimPoint();
	old = atomic->value;
	atomic->value = value;
	return old;
}

static inline uint32
pg_atomic_fetch_add_u32(pg_atomic_uint32 *atomic, int32 change)
{
	SimPoint();
	atomic->value += change;
	return atomic->value - change;
}

static inline uint32
pg_atomic_fetch_sub_u32(pg_atomic_uint32 *atomic, int32 change)
{
	return pg_atomic_fetch_add_u32(atomic, -change);
}

static inline void
pg_atomic_init_u64(pg_atomic_uint64 *atomic, uint64 value)
{
	atomic->value = value;
}

static inline uint64
pg_atomic_read_u64(pg_atomic_uint64 *atomic)
{
	SimPoint();
	return atomic->value;
}

static inline void
pg_atomic_write_u64(pg_atomic_uint64 *atomic, uint64 value)
{
	SimPoint();
	atomic->value = value;
}

static inline uint64
pg_atomic_monotonic_advance_u64(pg_atomic_uint64 *atomic, uint64 target)
{
	SimPoint();
	atomic->value = Max(atomic->value, target);
	return atomic->value;
}

static inline void
pg_atomic_init_flag(pg_atomic_flag *atomic)
{
	atomic->value = false;
}

static inline bool
pg_atomic_test_set_flag(pg_atomic_flag *atomic)
{
	bool		was_clear;

	SimPoint();
	was_clear = !atomic->value;
	atomic->value = true;
	return was_clear;
}

static inline void
pg_atomic_clear_flag(pg_atomic_flag *atomic)
{
	SimPoint();
	atomic->value = false;
}

#endif							/* SIMULATE_ATOMICS_H */

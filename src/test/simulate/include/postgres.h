/*-------------------------------------------------------------------------
 *
 * postgres.h
 *	  What the core of src/backend/aio/task, the pipeline of WAL, what finds out
 *	  whether I/O is quick, and what gives space back, need of PostgreSQL, for
 *	  plain programs: types, macros, errors, memory, resource owners, locks and
 *	  atomic variables.
 *
 * The headers of this directory stand in for upstream's of the same names.
 * They declare what these files use and nothing else: one that needs more of
 * the server does not compile here.  server.c has the functions; wal_world.c
 * and wal_server.c have those that only the pipeline of WAL needs.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_POSTGRES_H
#define SIMULATE_POSTGRES_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define USE_ASSERT_CHECKING 1

typedef int32_t int32;
typedef int64_t int64;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;
typedef size_t Size;
typedef uintptr_t Datum;
typedef unsigned int Oid;
typedef int pgsocket;

#define PGDLLIMPORT
#define PGINVALID_SOCKET	(-1)
#define InvalidOid			((Oid) 0)
#define OidIsValid(oid)		((oid) != InvalidOid)

/* a program may have smaller ones */
#ifndef BLCKSZ
#define BLCKSZ				8192
#endif
#ifndef RELSEG_SIZE
#define RELSEG_SIZE			64
#endif

#define PG_IO_ALIGN_SIZE	64
#define MAXPGPATH			64
#define PG_BINARY			0
#define FLEXIBLE_ARRAY_MEMBER
#define PG_UINT32_MAX		UINT32_MAX
#define PG_UINT64_MAX		UINT64_MAX
#define add_size(a, b)		((a) + (b))
#define mul_size(a, b)		((a) * (b))
#define strlcpy(to, from, size)	((void) snprintf(to, size, "%s", from))
#define Min(x, y)			((x) < (y) ? (x) : (y))
#define Max(x, y)			((x) > (y) ? (x) : (y))
#define unconstify(type, x)	((type) (x))
#define lengthof(array)		(sizeof(array) / sizeof((array)[0]))
#define likely(x)			__builtin_expect(!!(x), 1)
#define unlikely(x)			__builtin_expect(!!(x), 0)
#define pg_noinline			__attribute__((noinline))
#define pg_noreturn			_Noreturn
#define pg_unreachable()	__builtin_unreachable()
#define TYPEALIGN(a, n)		(((uintptr_t) (n) + ((a) - 1)) & ~((uintptr_t) ((a) - 1)))
#define PointerGetDatum(p)	((Datum) (p))
#define DatumGetPointer(d)	((void *) (d))
#define StaticAssertDecl(condition, message)	_Static_assert(condition, message)
#define StaticAssertStmt(condition, message) \
	do { _Static_assert(condition, message); } while (0)
#define pg_attribute_printf(f, a)	__attribute__((format(printf, f, a)))

pg_noreturn extern void SimFail(const char *file, int line, const char *what);
#define Assert(condition) \
	((condition) ? (void) 0 : SimFail(__FILE__, __LINE__, #condition))

extern void pg_usleep(long microseconds);

#include "utils/elog.h"
#include "utils/palloc.h"

#endif							/* SIMULATE_POSTGRES_H */

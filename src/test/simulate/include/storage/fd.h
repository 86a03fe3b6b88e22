/*-------------------------------------------------------------------------
 *
 * fd.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_FD_H
#define SIMULATE_FD_H

typedef int File;

#define IO_DIRECT_DATA	1

extern int	io_direct_flags;

extern int	BasicOpenFile(const char *name, int flags);
extern void ReserveExternalFD(void);
extern void ReleaseExternalFD(void);

#endif							/* SIMULATE_FD_H */

/*-------------------------------------------------------------------------
 *
 * snapshot.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_SNAPSHOT_H
#define SIMULATE_SNAPSHOT_H

typedef struct SnapshotData *Snapshot;

#endif							/* SIMULATE_SNAPSHOT_H */

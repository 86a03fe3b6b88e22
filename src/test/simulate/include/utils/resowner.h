/*-------------------------------------------------------------------------
 *
 * resowner.h
 *	  Stands in for upstream's header of this name; see ../postgres.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMULATE_RESOWNER_H
#define SIMULATE_RESOWNER_H

typedef struct ResourceOwnerData *ResourceOwner;

typedef enum ResourceReleasePhase
{
	RESOURCE_RELEASE_BEFORE_LOCKS = 1,
	RESOURCE_RELEASE_LOCKS,
	RESOURCE_RELEASE_AFTER_LOCKS,
} ResourceReleasePhase;

#define RELEASE_PRIO_FIRST	1

typedef struct ResourceOwnerDesc
{
	const char *name;
	ResourceReleasePhase release_phase;
	uint32		release_priority;
	void		(*ReleaseResource) (Datum res);
	char	   *(*DebugPrint) (Datum res);
} ResourceOwnerDesc;

extern ResourceOwner CurrentResourceOwner;

extern void ResourceOwnerEnlarge(ResourceOwner owner);
extern void ResourceOwnerRemember(ResourceOwner owner, Datum res,
								  const ResourceOwnerDesc *desc);
extern void ResourceOwnerForget(ResourceOwner owner, Datum res,
								const ResourceOwnerDesc *desc);

#endif							/* SIMULATE_RESOWNER_H */

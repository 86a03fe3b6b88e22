/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Stands in for the server's header of this name; see apply_world.h.
 *
 * Copyright (c) 2026, the pgawait authors
 *
 *-------------------------------------------------------------------------
 */
#include "apply_world.h"

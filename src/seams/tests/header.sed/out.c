/* a file */
#include "postgres.h"

#include "aio/seams.h"

#include "fmgr.h"

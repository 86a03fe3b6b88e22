/* a file */
#include "postgres.h"

#include "fmgr.h"

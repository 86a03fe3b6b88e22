#include "postgres.h"

#include "postgres_fdw.h"
#include "aio/async_fdw.h"

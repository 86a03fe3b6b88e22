#include "postgres.h"

#include "postgres_fdw.h"

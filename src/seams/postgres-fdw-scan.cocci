// postgres_fdw reads rows ahead.
//
// What: where a scan has used up its rows, it asks us for more; a FETCH is sized by us, and takes its result from us; a scan that begins
//   says so, and one that begins anew forgets what it has asked for; a connection is free when a query is sent whose
//   parameters have just been computed, by subqueries perhaps; the library tells, when it is loaded, that its scans can be told to ask.
// Without it: a server has nothing to do while the rows of a FETCH are used, and until its turn comes.
// Could disappear: if upstream's postgres_fdw did so.
//
// include: aio/async_fdw.h
// target: contrib/postgres_fdw/postgres_fdw.c AioFdwFetchMore+1 fetch_more_data-1 AioFdwFetched+1 AioFdwSizeFetch+1 pgfdw_get_result-1 AioFdwRescan+1 AioFdwScanBegins+1 AioFdwFreeConnection+2 conn_state+2 node+4
//   in create_cursor execute_dml_stmt fetch_more_data fetch_more_data_begin postgresBeginForeignScan postgresIterateForeignScan postgresReScanForeignScan
// target: contrib/postgres_fdw/option.c AioFdwInitialize+1
//   in _PG_init

@begins@
symbol node;
@@
  postgresBeginForeignScan(...)
  {
  <+...
  fsstate->async_capable = node->ss.ps.async_capable;
+ AioFdwScanBegins(node);
  ...+>
  }

@free_scan@
statement S;
symbol fsstate;
@@
  create_cursor(...)
  {
  <+...
+ AioFdwFreeConnection(fsstate->conn_state);
  if (!PQsendQueryParams(...)) S
  ...+>
  }

@free_modify@
statement S;
symbol dmstate;
@@
  execute_dml_stmt(...)
  {
  <+...
+ AioFdwFreeConnection(dmstate->conn_state);
  if (!PQsendQueryParams(...)) S
  ...+>
  }

@more@
symbol node;
@@
  postgresIterateForeignScan(...)
  {
  <+...
- fetch_more_data
+ AioFdwFetchMore
  (node)
  ...+>
  }

@fetched@
expression conn;
symbol node;
@@
  fetch_more_data(...)
  {
  <+...
- pgfdw_get_result(conn)
+ AioFdwFetched(node, conn)
  ...+>
  }

@size@
expression buf;
symbol node;
@@
  fetch_more_data_begin(...)
  {
  <+...
+ AioFdwSizeFetch(node);
  snprintf(buf, ...);
  ...+>
  }

@rescan@
expression res;
symbol node;
@@
  postgresReScanForeignScan(...)
  {
  <+...
  res = pgfdw_exec_query(...);
+ AioFdwRescan(node);
  ...+>
  }

@init@
@@
  _PG_init(...)
  {
  <+...
  MarkGUCPrefixReserved(...);
+ AioFdwInitialize();
  ...+>
  }

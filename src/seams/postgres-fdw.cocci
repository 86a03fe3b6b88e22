// postgres_fdw sends batches of rows without waiting.
//
// What: execute_foreign_modify() makes the connection ready through us, prepares and deallocates through us, and asks
//   whether to wait for the result; what is pending on a connection is finished through us; the end of a transaction
//   that has failed leaves libpq's pipeline mode first.
// Without it: each batch is waited for.
// Could disappear: if upstream's postgres_fdw did so.
//
// include: aio/async_fdw.h
// target: contrib/postgres_fdw/postgres_fdw.c AioFdwMakeReady+1 AioFdwDeallocate+1 AioFdwPrepare+1 AioFdwSent+1 AioFdwProcessPending+3 process_pending_request-4 conn_state-2 pendingAreq-2 deallocate_query-1 prepare_foreign_modify-1
//   in create_cursor execute_dml_stmt execute_foreign_modify postgresForeignAsyncConfigureWait
// target: contrib/postgres_fdw/connection.c AioFdwLeavePipeline+2 AioFdwProcessPending+2 process_pending_request-2
//   in GetConnection pgfdw_abort_cleanup pgfdw_abort_cleanup_begin pgfdw_exec_query

@ready@
expression a, b;
symbol fmstate, operation;
@@
  execute_foreign_modify(...)
  {
  <+...
- if (a) process_pending_request(b);
+ AioFdwMakeReady(fmstate, operation);
  ...+>
  }

@deallocate@
expression e;
@@
  execute_foreign_modify(...)
  {
  <+...
- deallocate_query
+ AioFdwDeallocate
  (e)
  ...+>
  }

@prepare@
expression e;
@@
  execute_foreign_modify(...)
  {
  <+...
- prepare_foreign_modify
+ AioFdwPrepare
  (e)
  ...+>
  }

@sent@
expression res, conn;
symbol fmstate, slots;
@@
  execute_foreign_modify(...)
  {
  <+...
+ if (AioFdwSent(fmstate)) return slots;
  res = pgfdw_get_result(conn);
  ...+>
  }

@pending@
expression e;
@@
- process_pending_request
+ AioFdwProcessPending
  (e);

@abort@
identifier f = {pgfdw_abort_cleanup, pgfdw_abort_cleanup_begin};
expression e;
symbol entry, true;
@@
  f(...)
  {
  <+...
  entry->have_error = true;
+ AioFdwLeavePipeline(entry->conn, &entry->state);
  ...+>
  }

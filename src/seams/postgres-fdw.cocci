// postgres_fdw sends batches of rows without waiting.
//
// What: execute_foreign_modify() makes the connection ready through us, prepares and deallocates through us, and asks
//   whether to wait for the result; the end of a transaction that has failed sends no more, and leaves libpq's pipeline
//   mode where it waits for a query that it has cancelled.
// Without it: each batch is waited for.
// Could disappear: if upstream's postgres_fdw did so.
//
// include: aio/async_fdw.h
// target: contrib/postgres_fdw/postgres_fdw.c AioFdwMakeReady+1 AioFdwDeallocate+1 AioFdwPrepare+1 AioFdwSent+1 process_pending_request-1 conn_state-2 pendingAreq-2 deallocate_query-1 prepare_foreign_modify-1
//   in execute_foreign_modify
// target: contrib/postgres_fdw/connection.c AioFdwForgetPipeline+2 AioFdwLeavePipeline+1
//   in pgfdw_abort_cleanup pgfdw_abort_cleanup_begin pgfdw_cancel_query_end

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

@abort@
identifier f = {pgfdw_abort_cleanup, pgfdw_abort_cleanup_begin};
expression e;
symbol entry, true;
@@
  f(...)
  {
  <+...
  entry->have_error = true;
+ AioFdwForgetPipeline(entry->conn, &entry->state);
  ...+>
  }

@cancelled@
symbol conn, endtime, retrycanceltime, consume_input;
statement S;
@@
  pgfdw_cancel_query_end(...)
  {
  <+...
+ AioFdwLeavePipeline(conn, endtime, retrycanceltime);
  if (consume_input && !PQconsumeInput(conn)) S
  ...+>
  }

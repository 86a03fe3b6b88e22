"""Mends of faults that adversaries have found, to be taken out one at a time: does the twin find each fault again?

Each has passages of source files, each of which is there once, and what stands there instead.
"""
import collections

Mend = collections.namedtuple('Mend', 'name fault passages')

MENDS = [
    Mend('unequal key',
         'a row to which a hash index leads is not compared, and a unique index is not preferred',
         [('src/backend/executor/ri_check.c',
           'if (!found || !check->scan->xs_recheck || has_keys(check, keys))',
           'if (true)'),
          ('src/backend/executor/ri_search.c',
           'is_unique && !target_is_unique)) &&',
           'is_unique && !target_is_unique && false)) &&')]),
    Mend('index not drained', 'who searches, or opens, an index that lacks entries has nothing drained',
         [('src/backend/executor/backlog_gate.c',
           'if (AioIndexLacksEntries(backlog) || statement->failed)',
           'if (false && (AioIndexLacksEntries(backlog) || statement->failed))')]),
    Mend('value out of line', 'a kept row with a value out of line goes together with others',
         [('src/backend/executor/row_buffer.c',
           'tuple->t_len > TOAST_TUPLE_THRESHOLD ||\n\t\tHeapTupleHasExternal(tuple);',
           'tuple->t_len > TOAST_TUPLE_THRESHOLD;')]),
    Mend('stable', 'a STABLE function counts as fixed',
         [('src/backend/executor/volatility.c',
           'return func_volatile(funcid) == PROVOLATILE_IMMUTABLE &&\n\t\t\t\t!depends_on_setting(funcid);',
           'return func_volatile(funcid) != PROVOLATILE_VOLATILE &&\n\t\t\t\t!depends_on_setting(funcid);')]),
    Mend('pages in vain', 'pages that were looked up in vain count as needed',
         [('src/backend/executor/lookup_scan.c',
           'lookup->window.in_vain += count_pages(lookup, lookup->nahead, true);',
           'lookup->window.needed += count_pages(lookup, lookup->nahead, true);')]),
    Mend('scan to its end', 'a scan is taken to be read to its end, whatever is above it',
         [('src/backend/executor/lookup_scan.c',
           'lookup->window.wanted = rows == AIO_ALL_ROWS ? rows : rows - 1;',
           'lookup->window.wanted = Max(rows, AIO_ALL_ROWS);')]),
    Mend('semi join', 'the inner side of a semi join is taken to be read to its end',
         [('src/backend/executor/rows_wanted.c',
           'return ((const JoinState *) node)->single_match ||\n'
           '\t\t\t\t\t((const JoinState *) node)->jointype == JOIN_ANTI ? 1 : rows;',
           'return rows;')]),
    Mend('limit', 'a LIMIT is taken to want all rows of its input',
         [('src/backend/executor/rows_wanted.c',
           'return Min(rows, (uint64) Max(left, 1));',
           '(void) left;\n\treturn rows;')]),
    Mend('current user',
         'CURRENT_USER counts as fixed, and more rows are taken ahead than a cursor is moved by',
         [('src/backend/executor/volatility.c',
           'return op == SVFOP_CURRENT_TIMESTAMP || op == SVFOP_CURRENT_TIMESTAMP_N ||\n'
           '\t\t\top == SVFOP_CURRENT_CATALOG;',
           '(void) op;\n\t\treturn true;'),
          ('src/backend/executor/lookup_loop.c',
           '(uint32) Min(AioRowsOfPath(loop->path, loop->layer),\n'
           '\t\t\t\t\t\t\t\t\t\t (uint64) loop->window.distance + 1)',
           '(uint32) loop->window.distance + 1')]),
    Mend('clock', 'a function that tells the time may be called ahead',
         [('src/backend/executor/volatility.c',
           'if (check_functions_in_node(node, function_tells_time, NULL))',
           'if (false && check_functions_in_node(node, function_tells_time, NULL))')]),
    Mend('damaged page',
         'rows are taken ahead that may not be wanted, and the error of a damaged page is raised at once',
         [('src/backend/executor/lookup_loop.c',
           '(uint32) Min(AioRowsOfPath(loop->path, loop->layer),\n'
           '\t\t\t\t\t\t\t\t\t\t (uint64) loop->window.distance + 1)',
           '(uint32) loop->window.distance + 1'),
          ('src/backend/executor/lookup_loop.c',
           'if (!AioErrorIsOfWork(geterrcode()) || AioErrorIsOfOthers(&point) ||',
           'if (geterrcode() == ERRCODE_DATA_CORRUPTED ||\n'
           '\t\t\t!AioErrorIsOfWork(geterrcode()) || AioErrorIsOfOthers(&point) ||')]),
    Mend('privileges', 'an error in compiling an expression again fails the statement',
         [('src/backend/executor/lookup_projection.c',
           'return AioTry(compile_silently, &compilation, NULL, NULL);',
           'compile_silently(&compilation);\n\treturn true;')]),
    Mend('memory', 'copies of rows are kept when their node has ended, up to work_mem for each loop',
         [('src/backend/executor/lookup_loop.c',
           'return loop->lookups->memory;',
           'return loop->memory;'),
          ('src/backend/executor/lookup_loop.c',
           '\t\tif (row == NULL)\n\t\t\tfree_rows(loop);\n',
           '')]),
    Mend('operator', 'a probe calls whatever the index and its keys call',
         [('src/backend/executor/unnamed.c',
           'return index != NULL && AioIndexRunsUserCode(index);',
           'return index != NULL && false && AioIndexRunsUserCode(index);')]),
    Mend('read in place', 'xmax and others that are changed in place may be taken ahead',
         [('src/backend/executor/volatility.c',
           'if (IsA(node, Var) && is_changed_in_place((Var *) node))',
           'if (false && IsA(node, Var) && is_changed_in_place((Var *) node))')]),
    Mend('stable elsewhere',
         'conditions of a scan whose target list is evaluated later are only asked for side effects',
         [('src/backend/executor/lookup_loop.c',
           'loop->projection->early_quals,\n\t\t\t\t\t\t\t\t\t\t demands);',
           'loop->projection->early_quals,\n\t\t\t\t\t\t\t\t\t\t demands & AIO_NO_ERRORS);')]),
    Mend('internal error',
         'an internal error of a row that is ahead is raised at once, and STABLE functions are evaluated ahead',
         [('src/backend/executor/lookup_loop.c',
           'if (!rows_do(loop, AIO_FIXED))',
           'if (!rows_do(loop, 0))'),
          ('src/backend/executor/lookup_loop.c',
           'if (!AioErrorIsOfWork(geterrcode()) || AioErrorIsOfOthers(&point) ||',
           'if (geterrcode() == ERRCODE_INTERNAL_ERROR ||\n'
           '\t\t\t!AioErrorIsOfWork(geterrcode()) || AioErrorIsOfOthers(&point) ||')]),
    Mend('closed index', 'a worker closes a table without inserting the entries that wait for its indexes',
         [('src/backend/executor/apply.c',
           '\tAioDrainBeforeClosing(rri);\n',
           '')]),
    Mend('foreign scan', 'a foreign scan is begun before its turn, whatever is done meanwhile',
         [('src/backend/foreign/foreign_scan.c',
           'if (!AioRunIsUndisturbed(estate) ||\n\t\t!AioPlanChangesNothing(AioRunning()->query->planstate))',
           'if (false && (!AioRunIsUndisturbed(estate) ||\n'
           '\t\t!AioPlanChangesNothing(AioRunning()->query->planstate)))')]),
    Mend('index locks', 'a worker keeps indexes of other tables locked while a trigger runs',
         [('src/backend/executor/apply.c',
           'if (!may_end() ||\n\t\t(TRIGGER_FIRED_BEFORE(trigger->tg_event) &&',
           'if (true || !may_end() ||\n\t\t(TRIGGER_FIRED_BEFORE(trigger->tg_event) &&')]),
    Mend('planned twice', 'CREATE TABLE AS is planned twice',
         [('src/seams/parallel-insert.cocci',
           '//   in toast_save_datum\n',
           '//   in toast_save_datum\n'
           '// target: src/backend/commands/createas.c AioPlanInto+1 pg_plan_query-1 into+1\n'
           '//   in ExecCreateTableAs\n'),
          ('src/seams/parallel-insert.cocci',
           '  (true);\n  ...\n  }\n',
           '  (true);\n'
           '  ...\n'
           '  }\n'
           '\n'
           '@plan@\n'
           'expression list args;\n'
           'symbol into;\n'
           '@@\n'
           '  ExecCreateTableAs(...)\n'
           '  {\n'
           '  <+...\n'
           '- pg_plan_query\n'
           '+ AioPlanInto\n'
           '  (\n'
           '+ into,\n'
           '  args)\n'
           '  ...+>\n'
           '  }\n'),
          ('src/include/aio/parallel_insert.h',
           'extern bool AioMayInsertInto(const IntoClause *into);\n',
           'extern bool AioMayInsertInto(const IntoClause *into);\n'
           'extern PlannedStmt *AioPlanInto(const IntoClause *into, Query *query,\n'
           '\t\t\t\t\t\t\t\tconst char *query_string, int cursor_options,\n'
           '\t\t\t\t\t\t\t\tParamListInfo params);\n'),
          ('src/backend/executor/parallel_insert.c',
           '/* ------------------------------------------------------------------------\n * Leader\n',
           '#include "tcop/tcopprot.h"\n'
           '#include "utils/guc.h"\n'
           '\n'
           'PlannedStmt *\n'
           'AioPlanInto(const IntoClause *into, Query *query, const char *query_string,\n'
           '\t\t\tint cursor_options, ParamListInfo params)\n'
           '{\n'
           '\tif (AioMayInsertInto(into))\n'
           '\t\t(void) pg_plan_query(copyObject(query), query_string, cursor_options, params);\n'
           '\treturn pg_plan_query(query, query_string, cursor_options, params);\n'
           '}\n'
           '\n'
           '/* ------------------------------------------------------------------------\n'
           ' * Leader\n')]),
    Mend('operator class', 'an entry that a quad tree cannot place is collected',
         [('src/backend/access/index_batch/spgist_am.c',
           'return AioCanPlace(batch, values, isnull, root_compares) &&\n',
           'return\n')]),
    Mend('notices', 'expressions and predicates of indexes are not asked for side effects',
         [('src/backend/executor/side_effects.c',
           '(AioExpressionHasSideEffects((Node *) info->ii_Expressions, false) ||\n'
           '\t\t\t AioExpressionHasSideEffects((Node *) info->ii_Predicate, false)))',
           'info == NULL)')]),
    Mend('index opened', 'who opens an index to look at its pages has nothing drained',
         [('src/backend/executor/backlog_gate.c',
           'if (is_index && lacks_entries(statement, relid))',
           'if (false && is_index && lacks_entries(statement, relid))')]),
    Mend('copy fails', 'what ends the input of COPY is taken for an error that comes at any time',
         [('src/backend/executor/guard.c',
           'if (guard->cstate == NULL)\n\t\treturn false;',
           'if (guard->cstate == NULL || true)\n\t\treturn false;')]),
    Mend('schema', 'who makes the query of a foreign key need not be allowed to name its operators and types',
         [('src/backend/executor/ri_direct.c',
           'return may_use_schema(form.oprnamespace, role) &&\n'
           '\t\tmay_name_type(form.oprleft, role) &&\n'
           '\t\tmay_name_type(form.oprright, role) &&\n',
           'return (true || may_name_type(form.oprleft, role)) &&\n')]),
    Mend('notices ahead', 'expressions of indexes are evaluated ahead though they may send notices',
         [('src/backend/executor/lookup_insert.c',
           'if (value == NULL || AioExpressionHasSideEffects((Node *) value, 0))',
           'if (value == NULL)')]),
    Mend('paused copy', 'keys of a COPY wait as long as its client does',
         [('src/backend/executor/copy_wait.c',
           'return Min(Max(statement->client_drain_ms, PAUSE_MIN),\n'
           '\t\t\t   Max(statement->client_drain_ms * TOTAL_FACTOR, TOTAL_MIN) - statement->client_wait_ms);',
           'return 1e6 - 0 * statement->client_wait_ms;')]),
    Mend('trigger due', 'what is noted of the event that is due belongs to a nested statement',
         [('src/include/aio/trigger_queue.h',
           'return aio_trigger_due.call == call &&',
           'return')]),
]

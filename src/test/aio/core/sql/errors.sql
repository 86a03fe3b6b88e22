-- Errors at every stage.
CREATE FUNCTION error_of(command text) RETURNS TABLE (field text, value text)
LANGUAGE plpgsql AS $$
DECLARE
    state text; message text; detail text; hint text; context text;
    cons text; tab text; sch text; col text; typ text;
BEGIN
    EXECUTE command;
    RETURN QUERY VALUES ('no error', '');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS
        state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
        context = PG_EXCEPTION_CONTEXT, cons = CONSTRAINT_NAME,
        tab = TABLE_NAME, sch = SCHEMA_NAME, col = COLUMN_NAME,
        typ = PG_DATATYPE_NAME;
    context := regexp_replace(context, 'SQL statement ".*', '', 's');
    RETURN QUERY SELECT v.f, rtrim(v.v, E'\n') FROM (VALUES
        (1, 'sqlstate', state), (2, 'message', message), (3, 'detail', detail),
        (4, 'hint', hint), (5, 'context', context), (6, 'constraint', cons),
        (7, 'table', tab), (8, 'schema', sch), (9, 'column', col),
        (10, 'type', typ), (11, 'logged', logged())) v (n, f, v)
     WHERE v.v <> '' ORDER BY v.n;
END $$;

-- everything about an error stays as it was raised
SELECT * FROM error_of($$SELECT run('context body; fail 23505')$$);
SELECT * FROM error_of($$SELECT run('spawn 1', 'context task; fail 23505')$$);
SELECT * FROM error_of($$SELECT run('spawn 1; set 1', 'context task; await 1; fail 23505')$$);
SELECT * FROM error_of($$SELECT run('spawn 1; set 1', 'context outer; nest 2', 'context inner; await 1; fail XX001')$$);

-- from here on, which one it is, and who has run until then
\pset tuples_only on
CREATE FUNCTION error_and_log(VARIADIC programs text[]) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM run(programs[1], VARIADIC programs[2:]);
    RETURN 'no error; ' || logged();
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM || '; ' || logged();
END $$;

-- in the body: before, between and after tasks that end at once
SELECT error_and_log('fail XX000; spawn 1', 'log a');
SELECT error_and_log('spawn 1; fail XX000; spawn 1', 'log a');
-- with suspended tasks: they do not run again
SELECT error_and_log('spawn 1; fail XX000', 'log a; yield; log b');
SELECT error_and_log('spawn 1; spawn 2; spawn 1; fail 40001', 'log a; yield; log b', 'log c; await 1; log d');
-- unless it is a data error, so that that of an older task goes first
SELECT error_and_log('spawn 1; fail 23505', 'log a; yield; log b');
SELECT error_and_log('spawn 1; spawn 2; fail 22012', 'log a; yield; log b', 'log c; yield; fail 23505');
SELECT error_and_log('spawn 1; spawn 2; fail 54000', 'log a; yield; log b; fail 54001', 'log c; yield; fail 23505');

-- in a task, before it is suspended for the first time
SELECT error_and_log('spawn 1; log body', 'log a; fail XX000');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'log a; yield; log b', 'log c; fail XX000');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'log a; yield; log b', 'log c; fail 23505');
-- and afterwards; until older tasks have ended, younger ones go on
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'log a; yield; log b; yield; log c', 'yield; fail XX000');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'log a; yield; log b; yield; log c', 'yield; fail 23505');
-- the first by spawn order, not by time
SELECT error_and_log('spawn 1; spawn 2; spawn 3; spawn 4', 'yield; log a', 'yield; yield; yield; fail 23502', 'yield; fail 23503', 'fail 23504');
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; fail 23501', 'yield; fail 23502', 'fail 23503');
-- younger ones' errors do not matter then, nor what these leave behind
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; yield; log a', 'yield; fail 23502', 'yield; yield; log c; fail 23503');
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; yield; verdict', 'yield; fail 23502', 'yield; yield; lwlock; holdoff; handout; fail 23503');
-- an error that is not a data error ends the search for an earlier one
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; yield; yield; log a', 'yield; fail 23502', 'yield; yield; fail 40001');
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; yield; fail 23501', 'yield; fail 40001', 'fail 23503');
SELECT error_and_log('spawn 1; spawn 2; spawn 3', 'yield; yield; yield; fail 23501', 'yield; fail 23502', 'fail 40001');
-- ordered tasks: the younger ones never get their turn
SELECT error_and_log('spawn ordered 1; spawn ordered 2; spawn ordered 3', 'yield; turn; log a', 'turn; fail 23505', 'turn; log b');
SELECT error_and_log('spawn ordered 1; spawn ordered 2; spawn ordered 3; set 1', 'await 1; turn; fail 23501', 'turn; fail 23502', 'turn; fail 23503');
-- nor if they come to it after the failed one has ended
SELECT error_and_log('spawn 1; spawn ordered 2; spawn ordered 3', 'yield; yield; yield; yield; log a', 'yield; turn; fail 23505', 'yield; yield; turn; log b');
-- tasks that wait for what the failed one would have done
SELECT error_and_log('spawn 1; spawn 2', 'await 1; log a', 'fail 23505; set 1');
SELECT error_and_log('spawn 1; spawn 2', 'await 1; log a', 'yield; fail 23505; set 1');

-- in inner scopes
SELECT error_and_log('spawn 1; spawn 2', 'yield; log a', 'nest 3 4', 'yield; log b', 'fail 23505');
SELECT error_and_log('spawn 1; spawn 2; log body', 'nest 3', 'log a; set 1', 'await 1; fail XX000');
SELECT error_and_log('spawn 1; fail XX000', 'nest 2', 'yield; log a');
SELECT error_and_log('spawn 1; fail 23505', 'nest 2', 'yield; log a; yield; fail 23503');

-- with something held: a lock, interrupts, a pin, an AIO handle
SELECT use_table('pages') IS NULL;
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'yield; verdict; log a', 'lwlock; fail 23505');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'yield; verdict; log a', 'holdoff; fail 23505');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'yield; verdict; log a', 'pin 3; yield; fail 23505');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'yield; verdict; log a', 'extension; fail 23505');
SELECT error_and_log('spawn 1; spawn 2; spawn 1', 'yield; verdict; log a', 'handout; fail 23505');
SELECT error_and_log('pin 4; spawn 1; lwlock; fail 23505', 'yield; verdict; log a');

-- afterwards everything works
SELECT error_and_log('spawn 1; spawn 1; verdict', 'extension; unextension; verdict; yield; lwlock; unlwlock; verdict');
SELECT suspended, reads_in_flight FROM held();
SELECT aios_left();

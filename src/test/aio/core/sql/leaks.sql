-- Thousands of scopes leave nothing behind: no pin, AIO handle, memory, stack.
SELECT use_table('pages');

CREATE FUNCTION many_scopes(times int, evict boolean, VARIADIC programs text[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    before record;
    since record;
    pinned int;
BEGIN
    FOR i IN 1..times LOOP
        IF i = times / 2 THEN
            SELECT * INTO before FROM held();
        END IF;
        IF evict AND i % 50 = 0 THEN
            PERFORM pg_buffercache_evict_relation('pages');
        END IF;
        BEGIN
            PERFORM run(programs[1], VARIADIC programs[2:]);
        EXCEPTION WHEN unique_violation THEN
            NULL;
        END;
    END LOOP;
    SELECT * INTO since FROM held();
    SELECT count(*) INTO pinned FROM pg_buffercache
     WHERE relfilenode = pg_relation_filenode('pages') AND pinning_backends > 0;
    RETURN format('%s pins, %s AIOs, %s tasks more, %s bytes more, %s suspended, %s reading',
                  pinned, aios_left(), since.tasks - before.tasks, since.top_memory - before.top_memory,
                  since.suspended, since.reads_in_flight);
END $$;

SELECT many_scopes(5000, false, 'spawn 1; spawn 1', 'log a');
SELECT many_scopes(5000, false, 'spawn 1; spawn 2; set 1', 'await 1; log a', 'nest 1 1');
SELECT many_scopes(5000, true, 'spawn 1; spawn 2; spawn 3', 'read 1; read 2', 'read 3; read 4; read 5', 'pin 6; yield; unpin 6');
SELECT many_scopes(3000, true, 'spawn 1; spawn 2; spawn 3', 'read 1; yield', 'read 3; fail 23505', 'pin 6; yield; unpin 6');
SELECT many_scopes(3000, true, 'spawn 2; spawn 1; spawn 3; set 1', 'nest 3 3; await 2', 'await 1; fail 23505', 'pin 6; read 7; await 2; unpin 6');
-- many tasks at a time, with as few stacks as that takes
SELECT tasks FROM held();
SELECT length(run(repeat('spawn 1;', 500) || 'set 1', 'read 1; yield; log a'));
SELECT tasks <= current_setting('aio.max_tasks')::int + 1 AS enough FROM held();
DROP FUNCTION many_scopes;
-- stacks that will not be needed again are given back
SELECT tasks > 20 AS many FROM held();
SET aio.max_tasks = 4;
SELECT length(run(repeat('spawn 1;', 200), 'yield; log a'));
SELECT tasks <= 20 AS few FROM held();
RESET aio.max_tasks;

-- What the other tests of this directory have in common.
SET client_min_messages = warning;
CREATE EXTENSION aio;
CREATE EXTENSION amcheck;
CREATE EXTENSION bloom;
CREATE EXTENSION btree_gist;
CREATE EXTENSION pg_buffercache;

-- Everything that is wrong with a table, its partitions and TOAST tables, and
-- with their indexes as far as there is a checker for them.
CREATE FUNCTION complaints(tab regclass) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    leaf regclass;
    toast oid;
    idx record;
BEGIN
    FOR leaf, toast IN
        SELECT c.oid::regclass, c.reltoastrelid
          FROM pg_partition_tree(tab) p JOIN pg_class c ON c.oid = p.relid
         WHERE p.isleaf
    LOOP
        RETURN QUERY SELECT format('%s: block %s offset %s: %s', leaf, blkno, offnum, msg)
          FROM verify_heapam(leaf, check_toast => true);
        FOR idx IN
            SELECT i.indexrelid::regclass AS name, am.amname, i.indisunique
              FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
                   JOIN pg_am am ON am.oid = c.relam
             WHERE i.indrelid IN (leaf, toast) AND i.indisvalid
             ORDER BY c.relname
        LOOP
            BEGIN
                IF idx.amname = 'btree' THEN
                    PERFORM bt_index_check(idx.name, true, idx.indisunique);
                    PERFORM bt_index_parent_check(idx.name, true, true, idx.indisunique);
                ELSIF idx.amname = 'gin' THEN
                    PERFORM gin_index_check(idx.name);
                END IF;
            EXCEPTION WHEN OTHERS THEN
                RETURN NEXT format('%s: %s', idx.name, SQLERRM);
            END;
        END LOOP;
    END LOOP;
END $$;

-- Do a scan of this index and a sequential scan find the same rows?
CREATE FUNCTION same_by_index(idx regclass, condition text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    tab regclass := indrelid FROM pg_index WHERE indexrelid = idx;
    query text := format('SELECT array_agg(ctid ORDER BY ctid) FROM %s WHERE %s', tab, condition);
    line text;
    used boolean := false;
    by_heap tid[];
    by_index tid[];
BEGIN
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_indexonlyscan = off;
    SET LOCAL enable_bitmapscan = off;
    SET LOCAL enable_seqscan = on;
    EXECUTE query INTO by_heap;
    -- leave the planner no other index
    UPDATE pg_index SET indisvalid = (indexrelid = idx) WHERE indrelid = tab;
    SET LOCAL enable_indexscan = on;
    SET LOCAL enable_bitmapscan = on;
    SET LOCAL enable_seqscan = off;
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        used := used OR line ~ ('\m' || (SELECT relname FROM pg_class WHERE oid = idx) || '\M');
    END LOOP;
    IF NOT used THEN
        UPDATE pg_index SET indisvalid = true WHERE indrelid = tab;
        RETURN format('index %s cannot be used for %s', idx, condition);
    END IF;
    EXECUTE query INTO by_index;
    UPDATE pg_index SET indisvalid = true WHERE indrelid = tab;
    IF by_heap IS NULL THEN
        RETURN format('no row for %s', condition);
    END IF;
    IF by_heap IS DISTINCT FROM by_index THEN
        RETURN format('%s rows by sequential scan, %s by index %s',
                      cardinality(by_heap), coalesce(cardinality(by_index), 0), idx);
    END IF;
    RETURN 'same';
END $$;

-- Write out and forget all pages of a table's indexes, so that they must be
-- read again.
CREATE FUNCTION forget_indexes(tab regclass) RETURNS void
LANGUAGE sql AS $$
    SELECT count(pg_buffercache_evict_relation(indexrelid))
      FROM pg_index
     WHERE indrelid = tab OR indrelid IN (SELECT relid FROM pg_partition_tree(tab) WHERE isleaf)
$$;

-- Was there as much concurrency since the last call as the mode that the test
-- runs in asks for?  'wanted' is false for inserts that must not use tasks.
CREATE FUNCTION concurrency(wanted boolean DEFAULT true) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    s record;
    in_use boolean := current_setting('aio.await_index_inserts')::boolean AND
        current_setting('io_method') <> 'sync';
    shuffled boolean := coalesce(current_setting('aio.debug_suspend', true), 'off')::boolean;
    batched boolean := coalesce(current_setting('aio.debug_rows_before_batch', true), '1000')::int = 0;
BEGIN
    SELECT * INTO s FROM aio_session_stats(), aio_session_batches();
    PERFORM aio_session_stats_reset();
    IF NOT wanted OR NOT in_use THEN
        RETURN CASE WHEN s.tasks = 0 THEN 'as wanted' ELSE format('%s tasks', s.tasks) END;
    END IF;
    IF batched AND s.entries > 0 THEN
        RETURN 'as wanted';
    END IF;
    IF s.tasks = 0 THEN
        RETURN 'no tasks';
    END IF;
    IF shuffled AND s.tasks_suspended = 0 THEN
        RETURN format('none of %s tasks was suspended', s.tasks);
    END IF;
    RETURN 'as wanted';
END $$;

-- How many AIOs are not complete yet, after a while in which they may end.  What
-- is complete but not yet noticed by its owner does not count.
CREATE FUNCTION aios_left() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..10000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM pg_aios WHERE state NOT LIKE 'COMPLETED%');
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN (SELECT count(*) FROM pg_aios WHERE state NOT LIKE 'COMPLETED%');
END $$;

-- What a client learns of an error.
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
    -- the context ends with this function
    context := regexp_replace(context, 'SQL statement ".*', '', 's');
    RETURN QUERY SELECT v.f, rtrim(v.v, E'\n') FROM (VALUES
        (1, 'sqlstate', state), (2, 'message', message), (3, 'detail', detail),
        (4, 'hint', hint), (5, 'context', context), (6, 'constraint', cons),
        (7, 'table', tab), (8, 'schema', regexp_replace(sch, '^pg_temp_.*', 'pg_temp')), (9, 'column', col),
        (10, 'type', typ)) v (n, f, v)
     WHERE v.v <> '' ORDER BY v.n;
END $$;

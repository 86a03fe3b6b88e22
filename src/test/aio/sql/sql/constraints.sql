-- Every kind of constraint: the rows that pass, the rows that do not, and
-- what the client is told.
\getenv abs_builddir PG_ABS_BUILDDIR
\set rows :abs_builddir '/results/constraints.data'
\set filled :abs_builddir '/results/constraints_filled.data'

CREATE TABLE t (
    id int PRIMARY KEY,
    u int UNIQUE,
    n int UNIQUE NULLS NOT DISTINCT,
    inc int,
    payload text,
    deferred int UNIQUE DEFERRABLE INITIALLY DEFERRED,
    at_end int UNIQUE DEFERRABLE INITIALLY IMMEDIATE,
    during int4range,
    room int,
    CONSTRAINT t_covering UNIQUE (inc) INCLUDE (payload),
    CONSTRAINT t_booking EXCLUDE USING gist (room WITH =, during WITH &&),
    CONSTRAINT t_checked CHECK (room < 100000)
);
CREATE UNIQUE INDEX t_partial ON t (room, payload) WHERE u % 2 = 0;
CREATE UNIQUE INDEX t_expression ON t (lower(payload), (u + n));
CREATE INDEX t_plain ON t (payload);

CREATE FUNCTION row_of(k int, OUT r t) LANGUAGE sql IMMUTABLE AS $$
    SELECT k, k * 2, k, -k, 'p' || k, k, k, int4range(k * 10, k * 10 + 9), k % 7
$$;

COPY (SELECT (row_of(k)).* FROM generate_series(1, 3000) k) TO :'rows';
SELECT aio_session_stats_reset();
COPY t FROM :'rows';
SELECT concurrency();
SELECT forget_indexes('t');
INSERT INTO t SELECT (row_of(k)).* FROM generate_series(3001, 5000) k;
SELECT concurrency();
SELECT complaints('t');
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;
SELECT same_by_index('t_booking', 'room = 3 AND during && int4range(0, 100000)');
SELECT same_by_index('t_covering', 'inc < 0');
SELECT same_by_index('t_partial', 'u % 2 = 0 AND room >= 0');
SELECT same_by_index('t_expression', 'lower(payload) >= ''''');

-- each constraint in turn, by INSERT
CREATE FUNCTION insert_changed(change text) RETURNS TABLE (field text, value text)
LANGUAGE sql AS $$
    SELECT * FROM error_of(
        'INSERT INTO t SELECT (jsonb_populate_record(row_of(9001), ''' || change || ''')).*')
$$;
SELECT * FROM insert_changed('{"id": 77}');
SELECT * FROM insert_changed('{"u": 154}');
SELECT * FROM insert_changed('{"n": 77}');
INSERT INTO t SELECT (jsonb_populate_record(row_of(9000), '{"n": null}')).*;
SELECT * FROM insert_changed('{"n": null}');
SELECT * FROM insert_changed('{"inc": -77}');
SELECT * FROM insert_changed('{"payload": "p77", "room": 0}');
SELECT * FROM insert_changed('{"payload": "P77", "u": 154, "n": 77}');
SELECT * FROM insert_changed('{"payload": "P77", "u": 231, "n": 0, "id": 9001}');
SELECT * FROM insert_changed('{"at_end": 77}');
SELECT * FROM insert_changed('{"during": "[775,776)", "room": 0}');
SELECT * FROM insert_changed('{"room": 100000}');
SELECT * FROM insert_changed('{"id": null}');
-- several at a time: the first index in order is reported
SELECT * FROM insert_changed('{"during": "[775,776)", "room": 0, "payload": "p77", "inc": -77}');
SELECT * FROM insert_changed('{"deferred": 77, "at_end": 77, "during": "[775,776)", "room": 0}');

-- deferred until the end of the transaction, and resolved before it
BEGIN;
INSERT INTO t SELECT (jsonb_populate_record(row_of(9002), '{"deferred": 77}')).*;
UPDATE t SET deferred = -deferred WHERE id = 77;
COMMIT;
BEGIN;
INSERT INTO t SELECT (jsonb_populate_record(row_of(9003), '{"deferred": 78}')).*;
SAVEPOINT s;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK TO s;
COMMIT;
UPDATE t SET deferred = deferred + 1, at_end = at_end + 1;
SELECT concurrency();
SELECT complaints('t');
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;

-- a whole batch of COPY with one bad row somewhere
CREATE FUNCTION copy_changed(bad int, change text, file text) RETURNS TABLE (field text, value text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'COPY (SELECT (CASE WHEN k = %s THEN jsonb_populate_record(row_of(10000 + k), %L)
                            ELSE row_of(10000 + k) END).*
                 FROM generate_series(1, 900) k) TO %L', bad, change, file);
    RETURN QUERY SELECT * FROM error_of(format('COPY t FROM %L', file));
END $$;
SELECT * FROM copy_changed(1, '{"id": 79}', :'filled');
SELECT * FROM copy_changed(500, '{"id": 79}', :'filled');
SELECT * FROM copy_changed(900, '{"u": 158}', :'filled');
SELECT * FROM copy_changed(501, '{"inc": -79}', :'filled');
SELECT * FROM copy_changed(502, '{"payload": "p79", "room": 2}', :'filled');
SELECT * FROM copy_changed(503, '{"during": "[795,796)", "room": 2}', :'filled');
SELECT * FROM copy_changed(504, '{"at_end": 80}', :'filled');
SELECT * FROM copy_changed(505, '{"room": 100000}', :'filled');
-- a duplicate of a row of the same batch
SELECT * FROM copy_changed(506, '{"id": 10002}', :'filled');
SELECT * FROM copy_changed(507, '{"id": 10508}', :'filled');
SELECT count(*) FROM t WHERE id > 10000;
VACUUM t;
SELECT complaints('t');

-- temporal keys
CREATE TABLE temporal (
    id int,
    valid daterange,
    x int,
    PRIMARY KEY (id, valid WITHOUT OVERLAPS)
);
CREATE INDEX ON temporal (x);
INSERT INTO temporal
SELECT k % 100, daterange(date '2000-01-01' + k, date '2000-01-01' + k + 100), k
  FROM generate_series(1, 2000) k;
SELECT concurrency();
SELECT * FROM error_of($$INSERT INTO temporal VALUES (5, '[2000-01-10,2000-01-11)', 1)$$);
SELECT * FROM error_of($$INSERT INTO temporal VALUES (5, 'empty', 1)$$);
SELECT count(*) FROM temporal;

-- foreign keys are checked after the statement, as ever
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES t (id), x int UNIQUE);
CREATE INDEX ON child (parent);
INSERT INTO child SELECT k, k, k FROM generate_series(1, 1000) k;
SELECT concurrency();
SELECT * FROM error_of('INSERT INTO child SELECT k, k, k FROM generate_series(4500, 5500) k');
SELECT count(*) FROM child;

-- a trigger of the children changes their parents, while PostgreSQL does so itself
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE orphan (id int, parent int DEFAULT 0 REFERENCES parent ON DELETE SET DEFAULT ON UPDATE SET DEFAULT,
                     CHECK (parent > 0 OR id < 300));
INSERT INTO parent SELECT generate_series(0, 1000);
INSERT INTO orphan SELECT k, k FROM generate_series(1, 300) k;
CREATE FUNCTION change_parents() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.parent < 200 THEN
        DELETE FROM parent WHERE id = 500 + OLD.parent;
        UPDATE parent SET id = 2000 + OLD.parent WHERE id = 700 + OLD.parent;
        BEGIN
            DELETE FROM parent WHERE id = 300;
        EXCEPTION WHEN check_violation THEN
            NULL;
        END;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER change_parents BEFORE UPDATE ON orphan FOR EACH ROW EXECUTE FUNCTION change_parents();
DELETE FROM parent WHERE id BETWEEN 1 AND 20;
UPDATE parent SET id = id + 3000 WHERE id BETWEEN 21 AND 40;
DELETE FROM parent WHERE id = 0;
SELECT count(*), sum(id) FROM parent;
SELECT parent, count(*) FROM orphan WHERE parent = 0 GROUP BY parent;

DROP TABLE orphan, parent;
DROP FUNCTION change_parents;
DROP TABLE child, temporal, t CASCADE;
DROP FUNCTION insert_changed, copy_changed;

-- Partitioned, temporary and unlogged tables, TOAST, triggers.

-- so few that pages of temporary tables' indexes must be read again
SET temp_buffers = 100;
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/kinds_of_tables.data'

-- partitions, with indexes of their own and a constraint of one of them
CREATE TABLE parted (k int, a int, b text) PARTITION BY LIST ((k % 4));
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES IN (0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1) PARTITION BY HASH (a);
CREATE TABLE parted_1a PARTITION OF parted_1 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1b PARTITION OF parted_1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE parted_2 (b text, a int, k int);
ALTER TABLE parted ATTACH PARTITION parted_2 FOR VALUES IN (2);
CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
CREATE INDEX ON parted (a);
CREATE INDEX ON parted USING hash (b);
CREATE UNIQUE INDEX parted_2_k ON parted_2 (k);
CREATE UNIQUE INDEX parted_1a_k ON parted_1a (k);
COPY (SELECT n, -n, 'b' || n FROM generate_series(1, 4000) n) TO :'file';
SELECT aio_session_stats_reset();
COPY parted FROM :'file';
SELECT concurrency();
SELECT forget_indexes('parted');
INSERT INTO parted SELECT n, -n, 'c' || n FROM generate_series(4001, 6000) n;
-- rows move between partitions
UPDATE parted SET k = k + 10001 WHERE k % 4 IN (0, 3) AND k < 3000;
SELECT concurrency();
SELECT * FROM error_of('INSERT INTO parted SELECT n, -n, ''d'' FROM generate_series(5500, 5600) n');
SELECT * FROM error_of(format('COPY parted FROM %L', :'file'));
SELECT complaints('parted');
SELECT tableoid::regclass, count(*), sum(hashtext(parted::text)::bigint) FROM parted GROUP BY 1 ORDER BY 1;

-- a buffer of COPY that is empty at the end: its partition's rows have been inserted
CREATE TABLE flushed (k int, a int) PARTITION BY LIST (k);
CREATE TABLE flushed_1 PARTITION OF flushed FOR VALUES IN (1);
CREATE TABLE flushed_2 PARTITION OF flushed FOR VALUES IN (2);
CREATE INDEX ON flushed (a);
COPY (SELECT 1 + (n > 1000)::int, n FROM generate_series(1, 1500) n) TO :'file';
COPY flushed FROM :'file';
SELECT complaints('flushed');
SELECT tableoid::regclass, count(*), sum(a) FROM flushed GROUP BY 1 ORDER BY 1;

-- TOAST: long keys' tables, and chunks with an index of their own
CREATE TABLE toasted (id int PRIMARY KEY, long text, longer text);
ALTER TABLE toasted ALTER long SET STORAGE EXTERNAL;
CREATE INDEX toasted_prefix ON toasted (left(long, 20));
CREATE INDEX toasted_gin ON toasted USING gin (string_to_array(longer, ' '));
INSERT INTO toasted
SELECT n, repeat(md5(n::text), 150), (SELECT string_agg(md5((n * x)::text), ' ') FROM generate_series(1, 120) x)
  FROM generate_series(1, 300) n;
SELECT concurrency();
SELECT forget_indexes('toasted');
UPDATE toasted SET long = long || id, id = id + 1000 WHERE id % 3 = 0;
COPY toasted TO :'file';
TRUNCATE toasted;
COPY toasted FROM :'file';
SELECT concurrency();
SELECT complaints('toasted');
SELECT same_by_index('toasted_prefix', 'left(long, 20) >= ''0''');
SELECT count(*), sum(hashtext(toasted::text)::bigint) FROM toasted;

-- values that are toasted in the heap tuple, and indexed from there
CREATE TABLE wide (id int, a text, b text, c text);
CREATE INDEX ON wide (a);
CREATE INDEX ON wide USING hash (b);
CREATE INDEX ON wide USING spgist (c);
ALTER TABLE wide ALTER a SET STORAGE EXTENDED;
INSERT INTO wide SELECT n, repeat('a' || n, 400), repeat('b' || n, 500), repeat('c' || n, 600)
  FROM generate_series(1, 500) n;
UPDATE wide SET a = a, b = b || 'x' WHERE id % 2 = 0;
INSERT INTO wide SELECT * FROM wide;
SELECT concurrency();
SELECT complaints('wide');
SELECT count(*), sum(hashtext(wide::text)::bigint) FROM wide;

-- temporary tables: their pages are never locked, so tasks are not used
CREATE TEMP TABLE temporary (id int PRIMARY KEY, a text UNIQUE, b int);
CREATE INDEX ON temporary (b);
CREATE INDEX temporary_hash ON temporary USING hash (a);
CREATE INDEX temporary_gist ON temporary USING gist (b);
INSERT INTO temporary SELECT n, md5(n::text), n % 100 FROM generate_series(1, 8000) n;
SELECT concurrency(false);
COPY temporary TO :'file';
DELETE FROM temporary WHERE id % 2 = 0;
COPY (SELECT id * 2, md5('x' || id), b FROM temporary) TO :'file';
COPY temporary FROM :'file' WHERE id <= 8000;
SELECT concurrency(false);
SELECT complaints('temporary');
SELECT same_by_index('temporary_hash', 'a = ANY ((SELECT array_agg(a) FROM temporary WHERE id % 50 = 0)::text[])');
SELECT same_by_index('temporary_gist', 'b BETWEEN 10 AND 20');
SELECT * FROM error_of('INSERT INTO temporary SELECT n, md5(n::text), 1 FROM generate_series(8001, 8010) n UNION ALL SELECT 1, ''y'', 2');
SELECT count(*), sum(hashtext(temporary::text)::bigint) FROM temporary;

-- unlogged tables
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, a text, r int4range);
CREATE INDEX ON unlogged USING gin (string_to_array(a, ' '));
CREATE INDEX unlogged_gist ON unlogged USING gist (r);
CREATE INDEX unlogged_spgist ON unlogged USING spgist (r);
INSERT INTO unlogged SELECT n, n % 7 || ' ' || n % 11, int4range(n, n + 3) FROM generate_series(1, 4000) n;
SELECT forget_indexes('unlogged');
COPY (SELECT n, n % 7 || ' ' || n % 11, int4range(n, n + 3) FROM generate_series(4001, 8000) n) TO :'file';
COPY unlogged FROM :'file';
SELECT concurrency();
SELECT complaints('unlogged');
SELECT same_by_index('unlogged_gist', 'r && int4range(3000, 5000)');
SELECT same_by_index('unlogged_spgist', 'r && int4range(3000, 5000)');

-- triggers: order, what they see, and inserts of their own into the same table
CREATE TABLE watched (id int PRIMARY KEY, parent int, note text UNIQUE, doubled int GENERATED ALWAYS AS (id * 2) STORED);
CREATE INDEX ON watched (parent);
CREATE INDEX watched_doubled ON watched (doubled);
CREATE TABLE seen (n serial PRIMARY KEY, tg text, id int, found bigint, by_note bigint);
CREATE INDEX ON seen (id);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_LEVEL = 'ROW' THEN
        INSERT INTO seen (tg, id, found, by_note)
        SELECT TG_NAME, new.id, (SELECT count(*) FROM watched), (SELECT count(*) FROM watched w WHERE w.note = new.note);
        IF TG_WHEN = 'BEFORE' AND new.id % 10 = 0 AND new.parent IS NULL THEN
            INSERT INTO watched VALUES (-new.id, new.id, 'child of ' || new.id);
        END IF;
        RETURN new;
    END IF;
    INSERT INTO seen (tg, found) SELECT TG_NAME, count(*) FROM new_rows;
    RETURN NULL;
END $$;
CREATE TRIGGER after_row AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER after_statement AFTER INSERT ON watched REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION see();
COPY (SELECT n, NULL, 'row ' || n FROM generate_series(1, 1500) n) TO :'file';
COPY watched (id, parent, note) FROM :'file';
SELECT concurrency();
SET enable_seqscan = off;
CREATE TRIGGER before_row BEFORE INSERT ON watched FOR EACH ROW EXECUTE FUNCTION see();
COPY (SELECT n, NULL, 'row ' || n FROM generate_series(1501, 1800) n) TO :'file';
COPY watched (id, parent, note) FROM :'file';
INSERT INTO watched (id, note) SELECT n, 'row ' || n FROM generate_series(1801, 1900) n;
RESET enable_seqscan;
SELECT * FROM error_of(format('COPY watched (id, parent, note) FROM %L', :'file'));
SELECT complaints('watched');
SELECT tg, count(*), sum(id), sum(found), sum(by_note), md5(string_agg(id::text, ',' ORDER BY n)) FROM seen GROUP BY tg ORDER BY tg;
SELECT count(*), sum(hashtext(watched::text)::bigint) FROM watched;

DROP TABLE parted, toasted, wide, temporary, unlogged, watched, seen;
DROP FUNCTION see;

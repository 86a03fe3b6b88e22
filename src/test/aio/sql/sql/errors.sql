-- Which error is reported, when several rows of a COPY or an INSERT fail in
-- different indexes and different ways: that of the first row.
\getenv abs_builddir PG_ABS_BUILDDIR
\set file :abs_builddir '/results/errors.data'

-- In the order in which indexes are inserted into: one that can fail because
-- of a row's size, unique ones, one whose expression can fail.
CREATE TABLE t (id int, big text, u int, w int, divisor int);
CREATE INDEX t_big ON t (big);
CREATE UNIQUE INDEX t_u ON t (u);
CREATE INDEX t_gin ON t USING gin (string_to_array(big, ' '));
CREATE UNIQUE INDEX t_w ON t (w);
CREATE INDEX t_divide ON t ((1000 / divisor)) WHERE id > 0;

-- incompressible and too long for a btree
CREATE FUNCTION too_big() RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(md5(n::text), '') FROM generate_series(1, 300) n
$$;
INSERT INTO t SELECT n, 'b' || n, n, n, 1 FROM generate_series(1, 2000) n;

-- flaws: rows of the batch, from 1, each with one of: big u w divide both
CREATE FUNCTION copy_flawed(flaws jsonb, file text) RETURNS TABLE (field text, value text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format(
        'COPY (SELECT 10000 + k,
                      CASE WHEN flaw = ''big'' THEN too_big() ELSE ''b'' || 10000 + k END,
                      CASE WHEN flaw IN (''u'', ''both'') THEN 55 ELSE 10000 + k END,
                      CASE WHEN flaw IN (''w'', ''both'') THEN 66 ELSE 10000 + k END,
                      CASE WHEN flaw = ''divide'' THEN 0 ELSE 1 END
                 FROM generate_series(1, 800) k
                      LEFT JOIN jsonb_each_text(%L) f (at, flaw) ON f.at::int = k
                ORDER BY k) TO %L', flaws, file);
    PERFORM forget_indexes('t');
    RETURN QUERY SELECT * FROM error_of(format('COPY t FROM %L', file));
    TRUNCATE pg_temp.batch;
    EXECUTE format('COPY batch FROM %L', file);
    PERFORM forget_indexes('t');
    RETURN QUERY SELECT 'insert: ' || e.field, e.value
      FROM error_of('INSERT INTO t SELECT * FROM batch') e;
END $$;
CREATE TEMP TABLE batch (LIKE t);

SELECT aio_session_stats_reset();
SELECT * FROM copy_flawed('{"400": "u"}', :'file');
SELECT * FROM copy_flawed('{"400": "w"}', :'file');
SELECT * FROM copy_flawed('{"400": "both"}', :'file');
SELECT * FROM copy_flawed('{"400": "big"}', :'file');
SELECT * FROM copy_flawed('{"400": "divide"}', :'file');
SELECT * FROM copy_flawed('{"399": "big", "400": "u"}', :'file');
SELECT * FROM copy_flawed('{"399": "u", "400": "big"}', :'file');
SELECT * FROM copy_flawed('{"399": "w", "400": "u"}', :'file');
SELECT * FROM copy_flawed('{"399": "u", "400": "w", "398": "divide"}', :'file');
SELECT * FROM copy_flawed('{"399": "divide", "398": "w", "397": "big"}', :'file');
SELECT * FROM copy_flawed('{"399": "divide", "398": "w", "400": "big"}', :'file');
SELECT * FROM copy_flawed('{"1": "w", "2": "u", "3": "big", "4": "divide"}', :'file');
SELECT * FROM copy_flawed('{"799": "divide", "800": "u"}', :'file');
SELECT concurrency();

-- as a client sees it
\set VERBOSITY default
COPY t FROM STDIN;
20001	b	20001	20001	1
20002	b	20002	20002	1
20003	b	20003	1234	1
20004	b	1234	20004	0
\.
\echo :LAST_ERROR_SQLSTATE
COPY t FROM STDIN;
20001	b	20001	20001	1
20002	b	20002	20002	0
20003	b	20003	1234	1
\.
\echo :LAST_ERROR_SQLSTATE
COPY t (id, big, u, w, divisor) FROM STDIN WITH (HEADER);
id	big	u	w	divisor
20001	b	20001	20001	1
20002	b	20002	x	1
20003	b	20001	20003	1
\.
\echo :LAST_ERROR_SQLSTATE
-- a malformed line is found when it is read, before the batch's rows are
-- inserted into indexes
COPY t FROM STDIN;
20001	b	1234	20001	1
20002	b	20002	x	1
\.
\echo :LAST_ERROR_SQLSTATE
COPY t FROM STDIN WITH (ON_ERROR ignore);
20001	b	20001	20001	1
20002	b	20002	x	1
20003	b	20003	20003	1
20004	b	20004	20001	1
\.
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM t WHERE id > 2000;

-- COPY asks after each row whether a trigger is to be fired, also if the
-- entries of the next rows fail
CREATE TABLE asked (id int PRIMARY KEY, divisor int);
CREATE FUNCTION notes(n int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN IF n % 2 = 0 THEN RAISE NOTICE ''row %'', n; END IF; RETURN false; END';
CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER asks AFTER INSERT ON asked FOR EACH ROW WHEN (1 / NEW.divisor > 0) EXECUTE FUNCTION never();
COPY asked FROM STDIN;
1	1
2	0
3	1
3	1
\.
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER asks ON asked;
CREATE TRIGGER asks AFTER INSERT ON asked FOR EACH ROW WHEN (notes(NEW.id)) EXECUTE FUNCTION never();
COPY asked FROM STDIN;
1	1
2	1
3	1
4	1
3	1
6	1
\.
\echo :LAST_ERROR_SQLSTATE
DROP TABLE asked;
DROP FUNCTION notes, never;

-- nothing is left behind, and the table goes on
VACUUM t;
SELECT complaints('t');
INSERT INTO t SELECT n, 'c' || n, n, n, 1 FROM generate_series(10000, 12000) n;
SELECT complaints('t');
SELECT aios_left();
SELECT count(*), sum(hashtext(t::text)::bigint) FROM t;
DROP TABLE t;

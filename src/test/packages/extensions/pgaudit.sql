-- preload: pgaudit
-- set: pgaudit.log = 'all'
-- set: pgaudit.log_relation = on
CREATE TABLE t (i int PRIMARY KEY, v text);
CREATE INDEX ON t (v);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 3000) i;
\copy (SELECT i + 3000, v FROM t) TO 'rows'
\copy t FROM 'rows'
UPDATE t SET v = 'x' WHERE i = 5;
DO $$ BEGIN EXECUTE 'DELETE FROM t WHERE i = 7'; END $$;
SELECT count(*) FROM t;
CREATE ROLE auditor;
SET pgaudit.role = 'auditor';
GRANT SELECT ON t TO auditor;
SELECT max(i) FROM t;
\! grep -o 'AUDIT:.*' log

-- preload: pgaudit, pgauditlogtofile
-- set: pgaudit.log = 'write'
-- set: pgaudit.log_directory = 'audit'
-- set: pgaudit.log_filename = 'audit.log'
CREATE TABLE t (i int PRIMARY KEY);
INSERT INTO t SELECT generate_series(1, 2000);
DELETE FROM t WHERE i = 7;
\! grep -o 'AUDIT: SESSION.*' audit/audit.log

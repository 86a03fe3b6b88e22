-- preload: pre_prepare
CREATE SCHEMA preprepare;
CREATE TABLE preprepare.statements (name text PRIMARY KEY, statement text NOT NULL);
INSERT INTO preprepare.statements VALUES ('one', 'PREPARE one AS SELECT 1 AS one');
SET preprepare.relation = 'preprepare.statements';
SELECT prepare_all();
EXECUTE one;

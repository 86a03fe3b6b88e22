CREATE TABLE t AS SELECT i FROM generate_series(1, 100000) i;
CHECKPOINT;
SELECT sum(rel_os_pages) FROM pgfadvise_willneed('t');
SELECT count(*), sum(rel_os_pages) FROM pgfincore('t');

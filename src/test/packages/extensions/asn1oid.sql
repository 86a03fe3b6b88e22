CREATE TABLE oids (o asn1oid PRIMARY KEY, i int);
CREATE INDEX ON oids (i, o);
INSERT INTO oids SELECT format('1.3.6.%s.%s', i % 100, i)::asn1oid, i FROM generate_series(1, 5000) i;
SET enable_seqscan = off;
SELECT count(*) FROM oids WHERE o > '1.3.6.50';
SELECT i FROM oids WHERE o = '1.3.6.7.7';

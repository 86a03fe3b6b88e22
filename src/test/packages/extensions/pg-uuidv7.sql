SELECT uuid_v7_to_timestamptz('018570bb-4a7d-7c7e-8df4-6d47afd8c8fc') AT TIME ZONE 'UTC', uuid_timestamptz_to_v7('2023-01-02 04:26:40.637+00', true);
CREATE TABLE keys (k uuid PRIMARY KEY DEFAULT uuid_generate_v7(), r uuid DEFAULT gen_random_uuid() UNIQUE, i int);
INSERT INTO keys (i) SELECT i FROM generate_series(1, 10000) i;
SELECT count(*), count(DISTINCT k), sum(i) FROM keys;

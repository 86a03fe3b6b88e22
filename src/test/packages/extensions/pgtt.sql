LOAD 'pgtt';
CREATE /*GLOBAL*/ TEMPORARY TABLE g (i int, v text) ON COMMIT PRESERVE ROWS;
INSERT INTO g SELECT i, md5(i::text) FROM generate_series(1, 2000) i;
SELECT count(*) FROM g;

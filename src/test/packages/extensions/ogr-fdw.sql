\! printf 'id,name\n1,one\n2,two\n' >points.csv
SELECT format('CREATE SERVER s FOREIGN DATA WRAPPER ogr_fdw OPTIONS (datasource %L, format %L)', current_setting('data_directory') || '/points.csv', 'CSV') \gexec
CREATE FOREIGN TABLE points (fid bigint, id text, name text) SERVER s OPTIONS (layer 'points');
SELECT * FROM points;
CREATE TABLE kept AS SELECT * FROM points;

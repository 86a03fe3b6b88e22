CREATE TABLE t (i int PRIMARY KEY, v text, at timestamptz);

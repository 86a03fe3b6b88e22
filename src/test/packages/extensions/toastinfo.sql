CREATE TABLE toasted (i int, t text, u text STORAGE EXTERNAL);
INSERT INTO toasted VALUES (1, 'short', 'short'), (2, repeat('x', 100000), repeat('x', 100000)), (3, NULL, NULL);
SELECT i, pg_toastinfo(t), pg_toastinfo(u), pg_toastpointer(u) IS NULL FROM toasted;

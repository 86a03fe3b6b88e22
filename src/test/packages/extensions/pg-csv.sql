SELECT csv_agg(t) FROM (SELECT i, 'a,"b"' || i AS v FROM generate_series(1, 5) i) t;

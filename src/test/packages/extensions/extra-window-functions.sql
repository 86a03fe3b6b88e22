SELECT i, flip_flop(i % 5 = 1, i % 5 = 3) OVER (ORDER BY i), first_value_wo_null FROM (SELECT i, i AS first_value_wo_null FROM generate_series(1, 12) i) s ORDER BY i;
SELECT i, lag_ignore_nulls(nullif(i % 3, 0)) OVER w, nth_value_from_last(i, 2) OVER w FROM generate_series(1, 9) i WINDOW w AS (ORDER BY i);

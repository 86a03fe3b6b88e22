SELECT 'forty-two'::numeral + 'thirteen', 'MCMLXXXIV'::roman + 5, 'zweiundvierzig'::zahl * 2;
CREATE TABLE numerals AS SELECT i, i::text::numeral AS n FROM generate_series(1, 300) i;
SELECT max(n), min(n), sum(n) FROM numerals WHERE i < 50;

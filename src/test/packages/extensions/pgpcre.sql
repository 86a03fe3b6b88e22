SELECT 'foobar' =~ pcre 'o+b', pcre_match('(\w+)@(\w+)', 'me@here'), pcre_captured_substrings('(\w+)@(\w+)', 'me@here');
SELECT count(*) FROM generate_series(1, 20000) i WHERE md5(i::text) ~ pcre '^[a-f]{3}';

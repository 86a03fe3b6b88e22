-- preload: pg_pwhash
SELECT extname FROM pg_extension WHERE extname = 'pg_pwhash';

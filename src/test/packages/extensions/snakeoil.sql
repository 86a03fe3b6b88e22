-- fails: it needs the signatures of ClamAV, which no package has
SELECT proname FROM pg_proc WHERE proname LIKE '%snakeoil%' ORDER BY 1;

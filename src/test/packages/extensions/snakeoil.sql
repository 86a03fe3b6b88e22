SELECT proname FROM pg_proc WHERE proname LIKE '%snakeoil%' ORDER BY 1;

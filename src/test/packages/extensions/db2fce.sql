SELECT proname FROM pg_proc WHERE pronamespace = 'db2'::regnamespace GROUP BY 1 ORDER BY 1;

-- preload: pgnodemx
SELECT count(*) > 0 FROM proc_mountinfo();
SELECT count(*) > 10 FROM proc_meminfo();
SELECT envvar_text('PATH') <> '';

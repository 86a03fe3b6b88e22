\! pg_checksums_ext --version

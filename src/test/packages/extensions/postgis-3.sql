-- The scripts that create its extensions are another package.
LOAD 'postgis-3';

CREATE FUNCTION shout(text) RETURNS text LANGUAGE plsh AS $$
#!/bin/sh
echo "$1" | tr a-z A-Z
$$;
SELECT shout('quiet');

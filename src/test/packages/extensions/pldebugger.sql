-- preload: plugin_debugger
CREATE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN a + 1; END $$;
SELECT f(1);
SELECT proxyinfo IS NOT NULL FROM pldbg_get_proxy_info() proxyinfo;
SELECT pldbg_create_listener() > 0;

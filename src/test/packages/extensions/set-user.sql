-- preload: set_user
CREATE ROLE plain;
CREATE ROLE other;
GRANT EXECUTE ON FUNCTION set_user(text) TO plain;
SELECT set_user('plain');
SELECT current_user;
SELECT reset_user();
SELECT current_user = session_user;

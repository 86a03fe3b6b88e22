CREATE ROLE reader;
CREATE TABLE t (i int);
GRANT SELECT ON t TO reader;
INSERT INTO permission_target (id, role_name, permissions, object_type, schema_name, object_name) VALUES (1, 'reader', ARRAY['SELECT', 'INSERT']::perm_type[], 'TABLE', 'public', 't');
SELECT * FROM permission_diffs();

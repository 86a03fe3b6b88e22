LOAD 'age';
SET search_path = ag_catalog, "$user", public;
SELECT create_graph('persons');
SELECT * FROM cypher('persons', $$ UNWIND range(1, 500) AS i CREATE (:Person {id: i, name: 'p' + toString(i % 17)}) $$) AS (a agtype);
SELECT * FROM cypher('persons', $$ MATCH (a:Person), (b:Person) WHERE a.id = b.id + 1 AND a.id < 100 CREATE (a)-[:KNOWS {w: a.id}]->(b) $$) AS (a agtype);
SELECT * FROM cypher('persons', $$ MATCH (a:Person {id: 20})-[:KNOWS*1..3]->(b) RETURN b.id ORDER BY b.id $$) AS (id agtype);
SELECT * FROM cypher('persons', $$ MATCH (a:Person) SET a.even = (a.id % 2 = 0) RETURN count(*) $$) AS (n agtype);
SELECT * FROM cypher('persons', $$ MATCH (a:Person) RETURN a.name, count(*) ORDER BY a.name LIMIT 5 $$) AS (name agtype, n agtype);
SELECT drop_graph('persons', true);

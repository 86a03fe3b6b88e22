CREATE TABLE ways AS
    SELECT row_number() OVER () AS id, a AS source, b AS target, (a * 7 + b * 3) % 10 + 1 AS cost, 1.0 * ((a + b) % 7 + 1) AS reverse_cost
    FROM (SELECT x + y * 20 AS a, x + 1 + y * 20 AS b FROM generate_series(0, 18) x, generate_series(0, 19) y
          UNION ALL SELECT x + y * 20, x + (y + 1) * 20 FROM generate_series(0, 19) x, generate_series(0, 18) y) e;
SELECT seq, node, edge, agg_cost FROM pgr_dijkstra('SELECT * FROM ways', 0, 399, true) ORDER BY seq LIMIT 50;
SELECT sum(cost) FROM pgr_kruskal('SELECT * FROM ways');
SELECT count(*), sum(agg_cost) FROM pgr_drivingDistance('SELECT * FROM ways', 42, 20);
SELECT component, count(*) FROM pgr_connectedComponents('SELECT * FROM ways') GROUP BY 1;

INSERT INTO pointcloud_formats (pcid, srid, schema) VALUES (1, 4326, '<?xml version="1.0" encoding="UTF-8"?>
<pc:PointCloudSchema xmlns:pc="http://pointcloud.org/schemas/PC/1.1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<pc:dimension><pc:position>1</pc:position><pc:size>4</pc:size><pc:name>X</pc:name><pc:interpretation>int32_t</pc:interpretation><pc:scale>0.01</pc:scale></pc:dimension>
<pc:dimension><pc:position>2</pc:position><pc:size>4</pc:size><pc:name>Y</pc:name><pc:interpretation>int32_t</pc:interpretation><pc:scale>0.01</pc:scale></pc:dimension>
<pc:dimension><pc:position>3</pc:position><pc:size>4</pc:size><pc:name>Z</pc:name><pc:interpretation>int32_t</pc:interpretation><pc:scale>0.01</pc:scale></pc:dimension>
</pc:PointCloudSchema>');
CREATE TABLE patches AS SELECT i / 100 AS id, PC_Patch(PC_MakePoint(1, ARRAY[i % 90, i % 45, i % 7])) AS p FROM generate_series(0, 9999) i GROUP BY 1;
SELECT id, PC_NumPoints(p), PC_PatchAvg(p, 'z') FROM patches ORDER BY id LIMIT 5;
SELECT PC_AsText(PC_Explode(p)) FROM patches WHERE id = 3 LIMIT 3;
SELECT PC_Get(PC_MakePoint(1, ARRAY[1, 2, 3]), 'y');

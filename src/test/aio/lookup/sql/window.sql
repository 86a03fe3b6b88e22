-- How far ahead of need lookups are made.
CREATE EXTENSION test_aio_lookup;

-- it doubles while reads begin, up to the maximum
SELECT window_distances('rrrrrrr', 64, false);
SELECT window_distances('rrrr', 7, false);
SELECT window_distances('rr', 1, false);

-- and halves while everything is in memory, until nothing is looked up ahead
SELECT window_distances('rrrrrrmmmmmmmm', 64, false);
SELECT window_distances('rrmrmr', 64, false);
SELECT window_distances('mmn', 64, false);

-- single lookups count when they fill half of the window, with one read among them
SELECT window_distances('RRRRMMMRMMMMMMMM', 64, false);
SELECT window_distances('rrMMMMMMM', 64, false);

-- what may never be needed is a twentieth of what has been
SELECT window_distances('nnnnnnnnnnnnnnnnnnnn', 64, true);
SELECT window_distances('rrr', 64, true, 39);
SELECT window_distances('rrr', 64, true, 40);
SELECT window_distances('rrrrrrrrr', 64, true, 1000);
SELECT window_distances('rrrrrrrrr', 64, true, 100000);
SELECT window_distances('rrrrr', 64, true, 0);

-- a window that has shrunk to nothing is closed
SELECT window_distances('mmmmmmn', 64, true, 1000);

DROP EXTENSION test_aio_lookup;

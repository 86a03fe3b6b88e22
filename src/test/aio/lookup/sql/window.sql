-- How far ahead of need lookups are made.
CREATE EXTENSION test_aio_lookup;

-- it doubles while reads begin, up to the maximum
SELECT window_distances('rrrrrrr', 64, -1);
SELECT window_distances('rrrr', 7, -1);
SELECT window_distances('rr', 1, -1);

-- and halves while everything is in memory, until nothing is looked up ahead
SELECT window_distances('rrrrrrmmmmmmmm', 64, -1);
SELECT window_distances('rrmrmr', 64, -1);
SELECT window_distances('mmn', 64, -1);

-- single lookups count when they fill half of the window, with one read among them
SELECT window_distances('RRRRMMMRMMMMMMMM', 64, -1);
SELECT window_distances('rrMMMMMMM', 64, -1);

-- what is wanted, and of what may never be needed a twentieth of what has been
SELECT window_distances('rrr', 64, 0);
SELECT window_distances('rrrr', 64, 5);
SELECT window_distances('rrr', 64, 0, 39);
SELECT window_distances('rrr', 64, 0, 40);
SELECT window_distances('rrrrrrrrr', 64, 3, 1000);
SELECT window_distances('rrrrrrrrr', 64, 0, 100000);
SELECT window_distances('nnnnnnnnnnnnnnnnnnnnr', 64, 0);

-- less what has been in vain
SELECT window_distances('rrrrrrvvvvv', 64, 0, 1000, 20);
SELECT window_distances('rrr', 64, 0, 1000, 70);
SELECT window_distances('rrr', 64, 2, 1000, 70);

-- a window that has shrunk to nothing
SELECT window_distances('mmmmmm', 64, 0, 1000);

DROP EXTENSION test_aio_lookup;

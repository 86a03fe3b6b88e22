-- preload: bgw_replstatus
-- set: bgw_replstatus.port = 25400
-- set: bgw_replstatus.bind = '127.0.0.1'
SELECT backend_type FROM pg_stat_activity WHERE backend_type LIKE '%replstatus%';

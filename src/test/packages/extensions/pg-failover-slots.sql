-- preload: pg_failover_slots
SHOW pg_failover_slots.synchronize_slot_names;
SELECT backend_type FROM pg_stat_activity WHERE backend_type LIKE '%failover%';

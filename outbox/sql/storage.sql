-- Envelopes stay in the row: reading 500 of them must not become 500 detours. Half a page stays free for the one later
-- version of each row, so that publishing never leaves the page and touches no index.
ALTER TABLE outbox_events SET (toast_tuple_target = 8160, fillfactor = 50);
-- Claims and settles rewrite deliveries; vacuum has to follow the rate of delivery, not the size of the table.
ALTER TABLE outbox_deliveries SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 20000,
    autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05
);
-- New rows arrive in bulk; statistics that say "empty" would cost a bad plan until the first analyze.
ALTER TABLE outbox_delivery_attempt_starts SET (autovacuum_analyze_scale_factor = 0.05);

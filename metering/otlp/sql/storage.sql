-- One row of these is rewritten by every request, so its versions must stay on their page and go soon.
ALTER TABLE consumption_windows_dirty SET (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE telemetry_tallies SET (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

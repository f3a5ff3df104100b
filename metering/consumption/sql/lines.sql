-- The digest of what tells a line of consumption apart. The same in every session: the time is written in UTC.
CREATE FUNCTION consumption_line_sha256(
    kind text, cluster_id text, window_start timestamptz, source_mode text, manager_key_id text,
    stated_organization_id text, namespace text, robot_id text, cr_name text, applies_to text, provider text
) RETURNS text LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT encode(sha256(convert_to(jsonb_build_array(
        $1, $2, to_char($3 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), $4, $5, $6, $7, $8, $9, $10, $11
    )::text, 'UTF8')), 'hex');
$$;

ALTER TABLE consumption_lines
    ADD CONSTRAINT consumption_line_in_window FOREIGN KEY (kind, cluster_id, window_start)
        REFERENCES consumption_windows (kind, cluster_id, window_start);
ALTER TABLE consumption_charges
    ADD CONSTRAINT consumption_charge_in_window FOREIGN KEY (kind, cluster_id, window_start)
        REFERENCES consumption_windows (kind, cluster_id, window_start);

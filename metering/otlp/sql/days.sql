-- The table of a kind; NULL for anything but the two kinds.
CREATE FUNCTION telemetry_table(kind text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE $1 WHEN 'llm_billing' THEN 'public.llm_billing_events'::regclass
                   WHEN 'resource_utilization' THEN 'public.resource_utilization_events'::regclass END;
$$;

-- Whether that table is a hypertable, whose chunks make themselves.
CREATE FUNCTION telemetry_is_hypertable(kind text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT relkind = 'r' FROM pg_class WHERE oid = public.telemetry_table($1);
$$;

-- The partitions or chunks of a kind: the UTC day that follows, and the partition's name.
CREATE FUNCTION telemetry_days(kind text) RETURNS TABLE (ends date, part text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF public.telemetry_is_hypertable(kind) THEN
        RETURN QUERY EXECUTE
            'SELECT (c.range_end AT TIME ZONE ''UTC'')::date, NULL::text FROM timescaledb_information.chunks c
              WHERE c.hypertable_schema = ''public'' AND c.hypertable_name = $1'
            USING (SELECT relname::text FROM pg_class WHERE oid = public.telemetry_table(kind));
    ELSE
        RETURN QUERY
            SELECT CASE WHEN c.relname LIKE '%\_early' THEN date '2020-01-01'
                        ELSE to_date(right(c.relname, 8), 'YYYYMMDD') + 1 END, format('public.%I', c.relname)
              FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
             WHERE i.inhparent = public.telemetry_table(kind);
    END IF;
END;
$$;

-- Make the partitions of these UTC days that do not exist yet; returns how many. All days before 2020 share one. Days
-- before what is retained, and more than 40 days ahead, are left out: nothing may be stored there. An empty table is
-- attached under a lock that neither inserts nor reads wait for.
CREATE FUNCTION telemetry_ensure_days(kind text, days date[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    parent constant regclass := public.telemetry_table(kind);
    first_day constant date := '2020-01-01';
    kept constant date := (SELECT (r.retained_from AT TIME ZONE 'UTC')::date
                             FROM public.telemetry_retention r WHERE r.kind = $1);
    made integer := 0;
    day date;
    part text;
    truncated record;
BEGIN
    IF public.telemetry_is_hypertable(kind) THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('telemetry_days'), hashtext(kind));
    FOR day IN SELECT DISTINCT greatest(d, first_day - 1) FROM unnest(days) d
                WHERE d >= coalesce(kept, d) AND d <= current_date + 40 ORDER BY 1 LOOP
        part := (SELECT relname FROM pg_class WHERE oid = parent)
                || CASE WHEN day < first_day THEN '_early' ELSE to_char(day, '_YYYYMMDD') END;
        CONTINUE WHEN to_regclass(format('public.%I', part)) IS NOT NULL;
        EXECUTE format('CREATE TABLE public.%I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', part, parent);
        FOR truncated IN SELECT tgname, tgfoid::regprocedure AS guard FROM pg_trigger
                          WHERE tgrelid = parent AND NOT tgisinternal AND tgtype & 32 <> 0 LOOP
            EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON public.%I FOR EACH STATEMENT EXECUTE FUNCTION %s',
                           truncated.tgname, part, truncated.guard);
        END LOOP;
        EXECUTE format('ALTER TABLE %s ATTACH PARTITION public.%I FOR VALUES FROM (%s) TO (%L)', parent, part,
                       CASE WHEN day < first_day THEN 'MINVALUE' ELSE quote_literal(day || ' 00:00:00+00') END,
                       (day + 1) || ' 00:00:00+00');
        made := made + 1;
    END LOOP;
    RETURN made;
END;
$$;

-- Remove whole days that end before or at `before` with all their events, oldest first, at most `most`; returns how
-- many went. What went is counted per cluster, and is never stored again. A day stays, and all after it, while
-- consumption has not aggregated its last window; the last 35 days stay whatever is asked. Whoever stores an event there
-- at this moment either commits before it is counted, or finds neither the partition nor leave to make it.
CREATE FUNCTION telemetry_expire_days(kind text, before date, most integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
DECLARE
    parent constant regclass := public.telemetry_table(kind);
    timescale constant text := (SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'timescaledb');
    last_end constant date := least(before, current_date - 35);
    gone integer := 0;
    midnight timestamptz;
    old record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('telemetry_days'), hashtext(kind));
    FOR old IN SELECT d.ends, d.part FROM public.telemetry_days(kind) d WHERE d.ends <= last_end ORDER BY 1 LIMIT most
    LOOP
        midnight := old.ends::timestamp AT TIME ZONE 'UTC';
        IF old.part IS NOT NULL THEN
            EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', old.part);
        END IF;
        EXIT WHEN EXISTS (SELECT 1 FROM public.consumption_windows_dirty w
                           WHERE w.kind = $1 AND w.marked_generation > w.cleared_generation
                             AND w.window_start < midnight);
        INSERT INTO public.telemetry_retention AS r (kind, retained_from) VALUES ($1, midnight)
            ON CONFLICT ON CONSTRAINT telemetry_retention_pkey
            DO UPDATE SET retained_from = greatest(r.retained_from, excluded.retained_from);
        EXECUTE format('INSERT INTO public.telemetry_expired_days (kind, cluster_id, day, events)
                        SELECT %L, cluster_id, %L, count(*) FROM %s WHERE occurred_at < %L GROUP BY cluster_id',
                       $1, old.ends - 1, parent, midnight);
        IF old.part IS NULL THEN
            EXECUTE format('SELECT %s.drop_chunks(%L::regclass, older_than => %L::timestamptz)', timescale, parent, midnight);
        ELSE
            EXECUTE format('DROP TABLE %s', old.part);
        END IF;
        gone := gone + 1;
    END LOOP;
    RETURN gone;
END;
$$;

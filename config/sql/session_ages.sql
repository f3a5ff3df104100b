-- How old the oldest open transactions of this database are, in seconds; 0 where there is none.
-- An administrator owns it, because only such a role sees what other roles' sessions are doing. It answers two numbers
-- and nothing of who or what they are, so the read role needs no wider right.
CREATE OR REPLACE FUNCTION public.session_ages(
    OUT idle_in_transaction_seconds double precision, OUT transaction_seconds double precision
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(extract(epoch FROM max(clock_timestamp() - state_change)
                        FILTER (WHERE state LIKE 'idle in transaction%')), 0)::double precision,
           coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::double precision
      FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
$$;
REVOKE ALL ON FUNCTION public.session_ages() FROM PUBLIC;

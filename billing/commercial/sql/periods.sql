-- The calendar of periods: half-open, one after the other without a gap, by the wall clock of the subscription's zone. The
-- database is the one authority for it, and what it once opened stays.

-- The moment of a wall time. One that the calendar skips is read by the clock of before, one that comes twice is its first.
CREATE FUNCTION commercial_moment(wall timestamp, zone text) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS
$$
DECLARE
    found timestamptz := wall AT TIME ZONE zone;
    shift interval;
BEGIN
    FOREACH shift IN ARRAY ARRAY['30 minutes', '1 hour', '2 hours', '3 hours']::interval[] LOOP
        IF (found - shift) AT TIME ZONE zone = wall THEN
            RETURN found - shift;
        END IF;
    END LOOP;
    RETURN found;
END
$$;

-- The moment at which the n-th period begins: the anchor's wall time n units later, or the last day of a month that has no
-- such day.
CREATE FUNCTION commercial_boundary(anchor timestamptz, zone text, unit text, n integer) RETURNS timestamptz
    LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS
$$
    SELECT CASE n WHEN 0 THEN anchor
                  ELSE public.commercial_moment((anchor AT TIME ZONE zone) + n * ('1 ' || unit)::interval, zone) END
$$;

-- The period that holds `at`, which is not before the anchor: starts_at <= at < ends_at.
CREATE FUNCTION commercial_period(
    anchor timestamptz, zone text, unit text, at timestamptz, OUT starts_at timestamptz, OUT ends_at timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS
$$
DECLARE
    apart interval := age(at AT TIME ZONE zone, anchor AT TIME ZONE zone);
    n integer := CASE unit
        WHEN 'year' THEN extract(year FROM apart)
        WHEN 'month' THEN extract(year FROM apart) * 12 + extract(month FROM apart)
        ELSE (at AT TIME ZONE zone)::date - (anchor AT TIME ZONE zone)::date END;
BEGIN
    IF at < anchor THEN
        RAISE EXCEPTION USING ERRCODE = 'OB101', CONSTRAINT = 'commercial_period_before_anchor',
            MESSAGE = 'No period holds a moment before the subscription.';
    END IF;
    n := greatest(n, 0);
    WHILE n > 0 AND public.commercial_boundary(anchor, zone, unit, n) > at LOOP
        n := n - 1;
    END LOOP;
    WHILE public.commercial_boundary(anchor, zone, unit, n + 1) <= at LOOP
        n := n + 1;
    END LOOP;
    starts_at := public.commercial_boundary(anchor, zone, unit, n);
    ends_at := public.commercial_boundary(anchor, zone, unit, n + 1);
END
$$;

-- At any time one meter of a tenant counts a tool and dimension. Openings for one tenant follow one another.
CREATE FUNCTION commercial_subscription_opens() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS
$$
BEGIN
    PERFORM FROM public.tenants t WHERE t.tenant_ref = NEW.tenant_id FOR NO KEY UPDATE;
    IF EXISTS (
        SELECT FROM public.commercial_subscriptions o
          JOIN public.commercial_meters a ON a.plan_id = o.plan_id
          JOIN public.commercial_meters b ON b.plan_id = NEW.plan_id AND b.tool = a.tool AND b.dimension = a.dimension
         WHERE o.tenant_id = NEW.tenant_id AND o.subscription_id <> NEW.subscription_id
           AND o.starts_at < coalesce(NEW.ends_at, 'infinity') AND NEW.starts_at < coalesce(o.ends_at, 'infinity')) THEN
        RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = 'commercial_subscription_one_meter',
            MESSAGE = 'Another subscription of the tenant counts the same tool and dimension at the same time.';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER commercial_subscription_opens AFTER INSERT ON commercial_subscriptions
    FOR EACH ROW EXECUTE FUNCTION commercial_subscription_opens();

-- A subscription that ends cuts the period it ends in; whoever decides holds that row, so no decision misses the end.
CREATE FUNCTION commercial_subscription_ends() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS
$$
BEGIN
    IF EXISTS (SELECT FROM public.commercial_entitlement_periods p
                WHERE p.subscription_id = NEW.subscription_id AND p.starts_at >= NEW.ends_at) THEN
        RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = 'commercial_subscription_ends',
            MESSAGE = 'A subscription never ends before a period that was opened.';
    END IF;
    UPDATE public.commercial_entitlement_periods p SET ends_at = NEW.ends_at
     WHERE p.subscription_id = NEW.subscription_id AND p.ends_at > NEW.ends_at;
    RETURN NULL;
END
$$;

CREATE TRIGGER commercial_subscription_ends AFTER UPDATE ON commercial_subscriptions
    FOR EACH ROW WHEN (NEW.ends_at IS DISTINCT FROM OLD.ends_at) EXECUTE FUNCTION commercial_subscription_ends();

-- commercial_reserve(…): the only way to set quota aside (C1, C2). One call, one transaction, one verdict:
--
--   reserved, reopened   quota is held now, in this generation
--   repeated      it is held already, by an earlier call for the same operation
--   settled       the operation was committed and counted before
--   unmetered     no active meter of the tenant counts this; nothing was written
--   exceeded      taken + wanted > limit, with these figures
--   conflicting   the operation is known with another quantity
--   needs_cost    the meter has a cost: call again with `cost_meter` and the unit cost that its price book gives
--   wrong_basis, wrong_key   the configuration cannot decide; nothing was written
--
-- The row of the entitlement's period is found and locked by one statement, and every statement here sees what was
-- committed before it began (READ COMMITTED), so operations of any number of sessions are decided one by one. An ordinary
-- operation costs that statement and its own row; everything else is asked only when there is no room or it is not new.
CREATE FUNCTION commercial_reserve(
    wanted uuid, operation text, hash_key text, for_business text, of_tenant text, of_tool text, of_dimension text,
    of_basis text, wanted_quantity bigint, of_provider text, at timestamptz, cost_meter text, cost_book text,
    unit_cost numeric)
RETURNS TABLE (
    verdict text, reservation uuid, held_generation integer, hard_limit bigint, taken bigint, held bigint, meter text,
    price_book text, currency text, cost_dimension text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
#variable_conflict use_variable
DECLARE
    period record;
    known commercial_runtime_reservations;
BEGIN
    FOR attempt IN 1..20 LOOP
        SELECT p.period_id, p.hard_limit, p.taken_quantity, m.meter_id, m.quantity_basis, m.cost_price_book,
               m.cost_currency, m.cost_dimension, (SELECT k.key_id FROM commercial_identity_keys k WHERE k.singleton) AS key_id
          INTO period
          FROM commercial_entitlement_periods p
          JOIN commercial_meters m
            ON m.entitlement_id = p.entitlement_id AND m.tool = of_tool AND m.dimension = of_dimension
         WHERE p.tenant_id = of_tenant AND at < p.ends_at AND p.starts_at <= at
           FOR NO KEY UPDATE OF p;
        meter := period.meter_id;
        hard_limit := period.hard_limit;
        taken := period.taken_quantity;
        verdict := CASE
            WHEN meter IS NULL THEN 'unmetered'
            WHEN period.quantity_basis <> of_basis THEN 'wrong_basis'
            WHEN period.key_id <> hash_key THEN 'wrong_key'
            WHEN period.cost_price_book IS NOT NULL AND cost_meter IS DISTINCT FROM meter THEN 'needs_cost'
            WHEN taken + wanted_quantity > hard_limit THEN 'exceeded' END;
        IF period.cost_price_book IS NULL THEN
            cost_book := NULL;
            unit_cost := NULL;
        END IF;

        IF verdict IS NULL THEN
            INSERT INTO commercial_runtime_reservations (
                reservation_id, operation_sha256, business, period_id, meter_id, quantity, as_of, reserved_at,
                provider_code, cost_price_book_ref, cost_currency, unit_cost_picos)
            VALUES (wanted, operation, for_business, period.period_id, meter, wanted_quantity, at, clock_timestamp(),
                    of_provider, cost_book, period.cost_currency, unit_cost)
            ON CONFLICT (operation_sha256) DO NOTHING;
            IF FOUND THEN
                verdict := 'reserved';
                reservation := wanted;
                held_generation := 1;
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;

        SELECT * INTO known FROM commercial_runtime_reservations r WHERE r.operation_sha256 = operation;
        IF known.reservation_id IS NOT NULL THEN
            reservation := known.reservation_id;
            held_generation := known.generation;
            verdict := CASE WHEN known.quantity <> wanted_quantity THEN 'conflicting'
                            WHEN known.state = 'settled' THEN 'settled'
                            WHEN known.state = 'reserved' THEN 'repeated'
                            ELSE verdict END;
            IF verdict IS NULL THEN
                UPDATE commercial_runtime_reservations r
                   SET state = 'reserved', generation = known.generation + 1, period_id = period.period_id,
                       meter_id = meter, as_of = at, reserved_at = clock_timestamp(), ended_at = NULL, ended_by = NULL,
                       provider_code = of_provider, cost_price_book_ref = cost_book,
                       cost_currency = period.cost_currency, unit_cost_picos = unit_cost
                 WHERE r.reservation_id = known.reservation_id AND r.state = 'released'
                   AND r.generation = known.generation;
                IF FOUND THEN
                    verdict := 'reopened';
                    held_generation := known.generation + 1;
                END IF;
            END IF;
        END IF;

        IF verdict = 'unmetered' AND commercial_open_period(of_tenant, of_tool, of_dimension, at, hash_key) THEN
            CONTINUE;
        END IF;
        IF verdict IS NOT NULL THEN
            IF verdict = 'exceeded' THEN
                held := commercial_held(period.period_id);
            END IF;
            price_book := period.cost_price_book;
            currency := period.cost_currency;
            cost_dimension := period.cost_dimension;
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'Other sessions kept deciding about the same operation.';
END $$;

-- commercial_release(…): the way to give quota back. True if this call ended the generation.
--
-- It locks the period first, as a decision does: a decision about the same operation would otherwise hold the period and wait
-- for the reservation, while the release holds the reservation and waits for the period. Settling needs no period.
CREATE FUNCTION commercial_release(of_reservation uuid, of_generation integer, by text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    PERFORM FROM commercial_entitlement_periods p
      WHERE p.period_id = (SELECT r.period_id FROM commercial_runtime_reservations r
                            WHERE r.reservation_id = of_reservation)
        FOR NO KEY UPDATE;
    UPDATE commercial_runtime_reservations r SET state = 'released', ended_at = clock_timestamp(), ended_by = by
     WHERE r.reservation_id = of_reservation AND r.generation = of_generation AND r.state || '' = 'reserved';
    RETURN FOUND;
END $$;

-- What is held in a period: the reservations that are open now, which are as many as there is work under way.
CREATE FUNCTION commercial_held(of_period bigint) RETURNS bigint
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT coalesce(sum(r.quantity), 0)::bigint FROM public.commercial_runtime_reservations r
     WHERE r.state = 'reserved' AND r.period_id = of_period
$$;

-- Opens the period that holds `at` of the entitlement from which the tenant's meter takes. True if it was opened or is open,
-- false if no subscription of the tenant has such a meter then. Openings of one subscription, and its end, follow one
-- another. What the calendar said for a neighbour stays: a period never begins before the end of the one before it.
CREATE FUNCTION commercial_open_period(
    of_tenant text, of_tool text, of_dimension text, at timestamptz, hash_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    contract record;
BEGIN
    SELECT s.*, e.entitlement_id, e.hard_limit INTO contract
      FROM commercial_subscriptions s
      JOIN commercial_meters m ON m.plan_id = s.plan_id AND m.tool = of_tool AND m.dimension = of_dimension
      JOIN commercial_entitlements e ON e.entitlement_id = m.entitlement_id
     WHERE s.tenant_id = of_tenant AND s.starts_at <= at AND (s.ends_at IS NULL OR at < s.ends_at)
       FOR NO KEY UPDATE OF s;
    IF contract.subscription_id IS NULL THEN
        RETURN false;
    END IF;
    INSERT INTO commercial_identity_keys (key_id) VALUES (hash_key) ON CONFLICT DO NOTHING;
    INSERT INTO commercial_entitlement_periods (
        subscription_id, tenant_id, entitlement_id, starts_at, ends_at, hard_limit)
    SELECT contract.subscription_id, of_tenant, contract.entitlement_id,
           greatest(c.starts_at, max(p.ends_at) FILTER (WHERE p.ends_at <= at)),
           least(c.ends_at, contract.ends_at, min(p.starts_at) FILTER (WHERE p.starts_at > at)), contract.hard_limit
      FROM commercial_period(contract.starts_at, contract.zone, contract.period_unit, at) c
      LEFT JOIN commercial_entitlement_periods p
        ON p.subscription_id = contract.subscription_id AND p.entitlement_id = contract.entitlement_id
     GROUP BY c.starts_at, c.ends_at
    HAVING count(*) FILTER (WHERE p.starts_at <= at AND at < p.ends_at) = 0;
    RETURN true;
END $$;

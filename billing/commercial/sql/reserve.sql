-- commercial_reserve(…): the only way to set quota aside (C1, C2). One call, one transaction, one verdict:
--
--   unmetered     no active meter of the tenant counts this; nothing was written
--   ambiguous, wrong_basis, wrong_key   the configuration cannot decide; nothing was written
--   needs_cost    the meter has a cost: call again with `cost_meter` and the unit cost that its price book gives
--   exceeded      used + held + wanted > limit, with these figures
--   conflicting   the operation is known with another quantity
--   reserved, reopened   quota is held now, in this generation
--   repeated      it is held already, by an earlier call for the same operation
--   settled       the operation was committed and counted before
--
-- The period's row is locked before the operation is looked at again, and every statement here sees what was committed
-- before it began (READ COMMITTED), so equal and different operations of any number of sessions are decided one by one.
CREATE FUNCTION commercial_reserve(
    wanted uuid, operation text, hash_key text, for_business text, of_tenant text, of_tool text, of_dimension text,
    of_basis text, wanted_quantity bigint, of_provider text, at timestamptz, cost_meter text, cost_book text,
    unit_cost numeric)
RETURNS TABLE (
    verdict text, reservation uuid, held_generation integer, hard_limit bigint, used bigint, held bigint, meter text,
    price_book text, currency text, cost_dimension text)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public
AS $$
#variable_conflict use_variable
DECLARE
    known commercial_runtime_reservations;
    contract record;
    period commercial_entitlement_periods;
    known_key text;
BEGIN
    FOR attempt IN 1..20 LOOP
        SELECT * INTO known FROM commercial_runtime_reservations r WHERE r.operation_sha256 = operation;
        IF known.reservation_id IS NOT NULL THEN
            reservation := known.reservation_id;
            held_generation := known.generation;
            verdict := CASE WHEN known.quantity <> wanted_quantity THEN 'conflicting'
                            WHEN known.state = 'settled' THEN 'settled'
                            WHEN known.state = 'reserved' THEN 'repeated' END;
            IF verdict IS NOT NULL THEN
                RETURN NEXT;
                RETURN;
            END IF;
        END IF;

        SELECT s.subscription_id, s.starts_at, s.ends_at, s.zone, s.period_unit, m.meter_id, m.entitlement_id,
               m.quantity_basis, m.cost_price_book, m.cost_currency, m.cost_dimension, count(*) OVER () AS meters,
               (SELECT p.period_id FROM commercial_entitlement_periods p
                 WHERE p.subscription_id = s.subscription_id AND p.entitlement_id = m.entitlement_id
                   AND p.starts_at <= at ORDER BY p.starts_at DESC LIMIT 1) AS period_id
          INTO contract
          FROM commercial_subscriptions s
          JOIN commercial_meters m ON m.plan_id = s.plan_id AND m.tool = of_tool AND m.dimension = of_dimension
         WHERE s.tenant_id = of_tenant AND s.starts_at <= at AND (s.ends_at IS NULL OR at < s.ends_at)
         LIMIT 1;
        verdict := CASE WHEN contract.meter_id IS NULL THEN 'unmetered'
                        WHEN contract.meters > 1 THEN 'ambiguous'
                        WHEN contract.quantity_basis <> of_basis THEN 'wrong_basis'
                        WHEN contract.cost_price_book IS NOT NULL AND cost_meter IS DISTINCT FROM contract.meter_id
                        THEN 'needs_cost' END;
        IF verdict IS NOT NULL THEN
            meter := contract.meter_id;
            price_book := contract.cost_price_book;
            currency := contract.cost_currency;
            cost_dimension := contract.cost_dimension;
            RETURN NEXT;
            RETURN;
        END IF;

        SELECT k.key_id INTO known_key FROM commercial_identity_keys k;
        IF known_key IS NULL THEN
            INSERT INTO commercial_identity_keys (key_id) VALUES (hash_key) ON CONFLICT DO NOTHING;
            CONTINUE;
        ELSIF known_key <> hash_key THEN
            verdict := 'wrong_key';
            RETURN NEXT;
            RETURN;
        END IF;

        SELECT * INTO period FROM commercial_entitlement_periods p
         WHERE p.period_id = contract.period_id AND at < p.ends_at FOR NO KEY UPDATE;
        IF period.period_id IS NULL THEN
            PERFORM commercial_open_period(contract.subscription_id, contract.entitlement_id, at);
            CONTINUE;
        END IF;

        IF contract.cost_price_book IS NULL THEN
            cost_book := NULL;
            unit_cost := NULL;
        END IF;
        meter := contract.meter_id;
        hard_limit := period.hard_limit;
        used := period.used_quantity;
        held := period.held_quantity;
        IF used + held + wanted_quantity > hard_limit THEN
            verdict := 'exceeded';
            RETURN NEXT;
            RETURN;
        END IF;

        IF known.reservation_id IS NULL THEN
            INSERT INTO commercial_runtime_reservations (
                reservation_id, operation_sha256, business, period_id, meter_id, quantity, as_of, reserved_at,
                provider_code, cost_price_book_ref, cost_currency, unit_cost_picos)
            VALUES (wanted, operation, for_business, period.period_id, meter, wanted_quantity, at, clock_timestamp(),
                    of_provider, cost_book, contract.cost_currency, unit_cost)
            ON CONFLICT (operation_sha256) DO NOTHING;
            verdict := 'reserved';
            reservation := wanted;
            held_generation := 1;
        ELSE
            UPDATE commercial_runtime_reservations r
               SET state = 'reserved', generation = known.generation + 1, period_id = period.period_id,
                   meter_id = meter, as_of = at, reserved_at = clock_timestamp(), ended_at = NULL, ended_by = NULL,
                   provider_code = of_provider, cost_price_book_ref = cost_book,
                   cost_currency = contract.cost_currency, unit_cost_picos = unit_cost
             WHERE r.reservation_id = known.reservation_id AND r.state = 'released'
               AND r.generation = known.generation;
            verdict := 'reopened';
            held_generation := known.generation + 1;
        END IF;
        IF FOUND THEN
            held := held + wanted_quantity;
            RETURN NEXT;
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION USING ERRCODE = '40001', MESSAGE = 'Other sessions kept deciding about the same operation.';
END $$;

-- Opens the period that holds `at`, unless it is open. Openings of one subscription, and its end, follow one another. What
-- the calendar said for a neighbour stays: a period never begins before the end of the one before it.
CREATE FUNCTION commercial_open_period(of_subscription text, of_entitlement text, at timestamptz) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, public
AS $$
DECLARE
    contract commercial_subscriptions;
BEGIN
    SELECT * INTO contract FROM commercial_subscriptions s WHERE s.subscription_id = of_subscription FOR NO KEY UPDATE;
    IF at >= contract.ends_at THEN
        RETURN;
    END IF;
    INSERT INTO commercial_entitlement_periods (subscription_id, entitlement_id, starts_at, ends_at, hard_limit)
    SELECT of_subscription, of_entitlement,
           greatest(c.starts_at, (SELECT max(p.ends_at) FROM commercial_entitlement_periods p
                                   WHERE p.subscription_id = of_subscription AND p.entitlement_id = of_entitlement
                                     AND p.ends_at <= at)),
           least(c.ends_at, contract.ends_at, (SELECT min(p.starts_at) FROM commercial_entitlement_periods p
                                                WHERE p.subscription_id = of_subscription
                                                  AND p.entitlement_id = of_entitlement AND p.starts_at > at)),
           e.hard_limit
      FROM commercial_entitlements e,
           commercial_period(contract.starts_at, contract.zone, contract.period_unit, at) c
     WHERE e.entitlement_id = of_entitlement
       AND NOT EXISTS (SELECT FROM commercial_entitlement_periods p
                        WHERE p.subscription_id = of_subscription AND p.entitlement_id = of_entitlement
                          AND p.starts_at <= at AND at < p.ends_at);
END $$;

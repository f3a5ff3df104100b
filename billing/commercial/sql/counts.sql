-- What is counted follows the reservation, in its own statement, under the schema role: the owner's login can write neither
-- counters nor usage. A period that would take more than its limit fails its CHECK, and with it the whole statement. The
-- guards of the table see to it that a row comes to 'reserved' from nothing or from 'released', and leaves it once.
--
-- A period counts what is taken: used and held together. Settling changes only which of the two it is, so it does not touch
-- the row that every decision about the entitlement waits for.
CREATE FUNCTION commercial_reservation_counts() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS
$$
BEGIN
    IF NEW.state = 'reserved' THEN
        UPDATE public.commercial_entitlement_periods p SET taken_quantity = p.taken_quantity + NEW.quantity
         WHERE p.period_id = NEW.period_id AND p.starts_at <= NEW.as_of AND NEW.as_of < p.ends_at;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = 'commercial_reservation_in_period',
                MESSAGE = 'A reservation takes from the period that holds its time.';
        END IF;
        RETURN NULL;
    END IF;
    IF NEW.state = 'released' THEN
        UPDATE public.commercial_entitlement_periods p SET taken_quantity = p.taken_quantity - NEW.quantity
         WHERE p.period_id = NEW.period_id;
    ELSE
        INSERT INTO public.usage_meter_events (
            reservation_id, generation, operation_sha256, period_id, meter_id, entitlement_id, tool, dimension,
            quantity_basis, quantity, provider_code, source, occurred_at)
        SELECT NEW.reservation_id, NEW.generation, NEW.operation_sha256, NEW.period_id, m.meter_id, m.entitlement_id,
               m.tool, m.dimension, m.quantity_basis, NEW.quantity, NEW.provider_code, NEW.ended_by, NEW.as_of
          FROM public.commercial_meters m WHERE m.meter_id = NEW.meter_id;
        IF NEW.unit_cost_picos IS NOT NULL THEN
            INSERT INTO public.commercial_cost_events (
                usage_id, price_book_ref, currency, quantity, unit_cost_picos, amount_picos)
            VALUES (NEW.reservation_id, NEW.cost_price_book_ref, NEW.cost_currency, NEW.quantity, NEW.unit_cost_picos,
                    NEW.unit_cost_picos * NEW.quantity);
        END IF;
    END IF;
    IF NEW.ended_by = 'sweep' THEN
        INSERT INTO public.commercial_sweep_findings (reservation_id, generation, business, outcome, reserved_at)
        VALUES (NEW.reservation_id, NEW.generation, NEW.business, NEW.state, NEW.reserved_at);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER commercial_reservation_counts AFTER INSERT OR UPDATE ON commercial_runtime_reservations
    FOR EACH ROW EXECUTE FUNCTION commercial_reservation_counts();

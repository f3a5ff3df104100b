-- What a reservation must be, in one guard: PostgreSQL reads a CHECK, and a trigger's WHEN, anew for every statement, which
-- on these rows cost as much as writing them. A function is read once per session.
CREATE FUNCTION commercial_reservation_is_whole() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS
$$
DECLARE
    broken text;
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF (NEW.state = 'reserved' AND NEW.generation = 1) IS NOT TRUE THEN
            broken := 'commercial_reservation_born';
        ELSIF (length(NEW.operation_sha256) = 64 AND NEW.operation_sha256 ~ '^[0-9a-f]+$'
               AND NEW.business ~ '^[a-z][a-z_]*$') IS NOT TRUE THEN
            broken := 'commercial_reservation_hashed';
        ELSIF (NEW.quantity BETWEEN 0 AND 9007199254740991) IS NOT TRUE THEN
            broken := 'commercial_reservation_quantity';
        END IF;
    ELSIF (NEW.reservation_id, NEW.operation_sha256, NEW.business, NEW.quantity)
          IS DISTINCT FROM (OLD.reservation_id, OLD.operation_sha256, OLD.business, OLD.quantity) THEN
        broken := 'commercial_reservation_frozen';
    ELSIF OLD.state = 'released' THEN
        IF (NEW.state = 'reserved' AND NEW.generation = OLD.generation + 1) IS NOT TRUE THEN
            broken := 'commercial_reservation_steps';
        END IF;
    ELSIF (OLD.state = 'reserved' AND NEW.state IN ('settled', 'released')) IS NOT TRUE THEN
        broken := 'commercial_reservation_steps';
    ELSIF (NEW.generation, NEW.period_id, NEW.meter_id, NEW.as_of, NEW.reserved_at, NEW.provider_code,
           NEW.cost_price_book_ref, NEW.cost_currency, NEW.unit_cost_picos)
          IS DISTINCT FROM (OLD.generation, OLD.period_id, OLD.meter_id, OLD.as_of, OLD.reserved_at, OLD.provider_code,
           OLD.cost_price_book_ref, OLD.cost_currency, OLD.unit_cost_picos) THEN
        broken := 'commercial_reservation_frozen';
    END IF;
    IF broken IS NULL AND NEW.state = 'reserved' THEN
        IF NOT (NEW.ended_at IS NULL AND NEW.ended_by IS NULL) THEN
            broken := 'commercial_reservation_shape';
        ELSIF length(NEW.provider_code) > 40 OR NEW.provider_code !~ '^[a-z][a-z0-9_]*$' THEN
            broken := 'commercial_reservation_provider';
        ELSIF num_nulls(NEW.cost_price_book_ref, NEW.cost_currency, NEW.unit_cost_picos) NOT IN (0, 3)
              OR NEW.unit_cost_picos < 0 THEN
            broken := 'commercial_reservation_cost';
        END IF;
    ELSIF broken IS NULL AND (NEW.ended_at IS NOT NULL
                              AND NEW.ended_by IN ('completion', 'compensation', 'caller', 'sweep')) IS NOT TRUE THEN
        broken := 'commercial_reservation_shape';
    END IF;
    IF broken IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = broken, MESSAGE = CASE broken
            WHEN 'commercial_reservation_born' THEN 'A reservation begins reserved, in its first generation.'
            WHEN 'commercial_reservation_hashed' THEN 'An operation is known by its keyed hash, its business by its owner.'
            WHEN 'commercial_reservation_quantity' THEN 'A quantity is a whole number from 0 to 2^53-1.'
            WHEN 'commercial_reservation_steps' THEN 'A generation ends once; after a release the next one begins.'
            WHEN 'commercial_reservation_frozen' THEN 'An operation keeps its identity and quantity, a generation its terms.'
            WHEN 'commercial_reservation_shape' THEN 'What has ended says when and by whom, and nothing else does.'
            WHEN 'commercial_reservation_provider' THEN 'A provider is a short code, fixed in the calling code.'
            ELSE 'A cost is a price book, a currency and a unit cost of at least zero.' END;
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER commercial_reservation_is_whole BEFORE INSERT OR UPDATE ON commercial_runtime_reservations
    FOR EACH ROW EXECUTE FUNCTION commercial_reservation_is_whole();

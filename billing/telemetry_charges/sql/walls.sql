-- A charge is paid by an account that is charged from telemetry, in its currency; generations follow one another; and
-- no posting charges an account unless a generation says for what.
ALTER TABLE telemetry_charges
    ADD CONSTRAINT telemetry_charge_charges_its_source FOREIGN KEY (billing_account_id, charge_source)
        REFERENCES billing_accounts (billing_account_id, charge_source) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT telemetry_charge_currency_of_account FOREIGN KEY (billing_account_id, currency)
        REFERENCES billing_accounts (billing_account_id, currency) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE telemetry_charge_generations
    ADD CONSTRAINT telemetry_charge_follows FOREIGN KEY (charge_id, previous_generation)
        REFERENCES telemetry_charge_generations (charge_id, generation) DEFERRABLE INITIALLY DEFERRED;

CREATE FUNCTION telemetry_charge_of_posting() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS
$$
BEGIN
    IF NOT EXISTS (SELECT FROM public.telemetry_charge_generations g WHERE g.posting_id = NEW.reference) THEN
        RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = 'telemetry_charge_of_posting',
            MESSAGE = 'A posting of this kind belongs to a generation of a telemetry charge.';
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER telemetry_charge_of_posting AFTER INSERT ON ledger_postings
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.kind = 'charge')
    EXECUTE FUNCTION telemetry_charge_of_posting();

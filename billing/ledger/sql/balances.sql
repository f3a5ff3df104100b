-- Balances follow entries, in the same statement, under the schema role: the owner's login cannot write them. The rows
-- are locked in one order. A wallet that would go below zero fails its CHECK, and with it the whole transaction.
CREATE FUNCTION ledger_move_balances() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS
$$
BEGIN
    IF EXISTS (SELECT 1 FROM fresh f JOIN public.ledger_postings p ON p.reference = f.posting_id
                WHERE f.line > p.entry_count) THEN
        RAISE EXCEPTION USING ERRCODE = 'OB100', CONSTRAINT = 'ledger_posting_closed',
            MESSAGE = 'A posting takes no entries beyond those it counts.';
    END IF;
    PERFORM 1 FROM public.ledger_accounts a
      WHERE a.ledger_account_id IN (SELECT f.ledger_account_id FROM fresh f)
      ORDER BY a.ledger_account_id FOR NO KEY UPDATE;
    UPDATE public.ledger_accounts a SET balance_picos = a.balance_picos + moved.picos
      FROM (SELECT f.ledger_account_id, sum(f.amount_picos) AS picos FROM fresh f GROUP BY 1) moved
     WHERE a.ledger_account_id = moved.ledger_account_id AND moved.picos <> 0;
    RETURN NULL;
END
$$;

CREATE TRIGGER ledger_entries_move_balances AFTER INSERT ON ledger_entries
    REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION ledger_move_balances();

ALTER TABLE ledger_accounts
    ADD CONSTRAINT ledger_account_currency_of_account FOREIGN KEY (billing_account_id, currency)
        REFERENCES billing_accounts (billing_account_id, currency) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ledger_entries
    ADD CONSTRAINT ledger_entry_held_names_its_hold
        CHECK (starts_with(ledger_account_id, 'held:') = (hold_id IS NOT NULL)),
    ADD CONSTRAINT ledger_entry_currency_of_account FOREIGN KEY (ledger_account_id, currency)
        REFERENCES ledger_accounts (ledger_account_id, currency) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ledger_postings
    ADD CONSTRAINT ledger_posting_charges_its_source FOREIGN KEY (billing_account_id, charge_source)
        REFERENCES billing_accounts (billing_account_id, charge_source) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE ledger_holds
    ADD CONSTRAINT ledger_hold_charges_its_source FOREIGN KEY (billing_account_id, charge_source)
        REFERENCES billing_accounts (billing_account_id, charge_source) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT ledger_hold_currency_of_account FOREIGN KEY (billing_account_id, currency)
        REFERENCES billing_accounts (billing_account_id, currency) DEFERRABLE INITIALLY DEFERRED;

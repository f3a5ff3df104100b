-- A reservation's money is the hold of the same id.
ALTER TABLE billing_reservations
    ADD CONSTRAINT billing_reservation_has_hold FOREIGN KEY (billing_reservation_id)
        REFERENCES ledger_holds (hold_id) DEFERRABLE INITIALLY DEFERRED;

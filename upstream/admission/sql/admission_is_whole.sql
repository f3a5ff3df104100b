-- A run exists exactly when its operation's outcome says so, and then with exactly one manifest and one reservation.
ALTER TABLE runs
    ADD CONSTRAINT run_has_outcome FOREIGN KEY (operation_id, run_id)
        REFERENCES admission_outcomes (operation_id, run_id) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT run_has_manifest FOREIGN KEY (run_id, run_admission_manifest_id)
        REFERENCES run_admission_manifests (run_id, run_admission_manifest_ref) DEFERRABLE INITIALLY DEFERRED,
    ADD CONSTRAINT run_has_reservation FOREIGN KEY (run_id, billing_reservation_id)
        REFERENCES wallet_reservations (run_id, billing_reservation_id) DEFERRABLE INITIALLY DEFERRED;

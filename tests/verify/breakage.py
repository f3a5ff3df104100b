"""Each way to break an invariant through SQL: (check, what, owner, statement); every guard is off while it runs."""

from tests.verify import claims_breakage, connector_breakage, quota_breakage

APPLIED = "(SELECT event_id FROM timeline_entries ORDER BY 1 LIMIT 1)"
DONE = "(SELECT current_attempt_id FROM outbox_deliveries WHERE status = 'acknowledged' ORDER BY event_id LIMIT 1)"

BROKEN: list[tuple[str, str, str, str]] = [
    (
        "definition_digest",
        "a forged definition digest",
        "gateway",
        "UPDATE delivery_set_versions SET source_release = source_release, definition = replace(definition,"
        " '\"memberCount\":14', '\"memberCount\":13')",
    ),
    (
        "definition_digest",
        "a member that the text does not name",
        "gateway",
        "DELETE FROM delivery_set_members WHERE event_type LIKE 'gateway.%'",
    ),
    ("delivery_definition", "a missing delivery", "core", "DELETE FROM outbox_deliveries WHERE attempt_count = 0"),
    (
        "delivery_definition",
        "a delivery that the definition does not name",
        "core",
        "INSERT INTO outbox_deliveries (event_id, destination, delivery_set_version, event_type, schema_version,"
        " consumer_name, mandatory, expected_receipt_type, expected_receipt_schema_version)"
        " SELECT event_id, 'billing_settlement_catch_up', delivery_set_version, event_type, schema_version, 'x', false,"
        " 'x', '1' FROM outbox_deliveries WHERE attempt_count = 0 LIMIT 1",
    ),
    (
        "delivery_definition",
        "another consumer than the member's",
        "core",
        "UPDATE outbox_deliveries SET consumer_name = 'somebody' WHERE status = 'pending'",
    ),
    (
        "delivery_definition",
        "a definition nobody registered",
        "core",
        "UPDATE outbox_events SET delivery_set_definition_digest = repeat('0', 64) WHERE published_at IS NULL",
    ),
    (
        "event_digest",
        "a stored digest that is not that of the text",
        "core",
        "UPDATE outbox_events SET event_envelope_sha256 = repeat('0', 64) WHERE event_id IN"
        " (SELECT event_id FROM outbox_deliveries WHERE attempt_count = 0)",
    ),
    (
        "event_canonical",
        "the same meaning in other bytes",
        "core",
        "UPDATE outbox_events SET event_envelope = replace(event_envelope, ',\"', ', \"'), event_envelope_sha256 ="
        " encode(sha256(convert_to(replace(event_envelope, ',\"', ', \"'), 'UTF8')), 'hex')"
        " WHERE event_id IN (SELECT event_id FROM outbox_deliveries WHERE attempt_count = 0)",
    ),
    (
        "event_canonical",
        "a column that says something else",
        "core",
        "UPDATE outbox_events SET correlation_id = 'other' WHERE event_id IN"
        " (SELECT event_id FROM outbox_deliveries WHERE attempt_count = 0)",
    ),
    (
        "event_published",
        "a complete event that is not published",
        "core",
        "UPDATE outbox_events SET published_at = NULL WHERE published_at IS NOT NULL",
    ),
    (
        "event_published",
        "a published event that is not complete",
        "core",
        "UPDATE outbox_events SET published_at = now() WHERE published_at IS NULL",
    ),
    (
        "delivery_quarantine",
        "a quarantined delivery without its row",
        "core",
        "DELETE FROM outbox_quarantine",
    ),
    (
        "delivery_quarantine",
        "a quarantine row of a delivery that is none",
        "core",
        "INSERT INTO outbox_quarantine (event_id, destination, attempt_id, event_type, schema_version, reason,"
        " event_envelope_digest_algorithm_version, event_envelope_sha256)"
        " SELECT e.event_id, d.destination, gen_random_uuid(), e.event_type, e.schema_version, 'x', 'jcs-sha256-v1',"
        " e.event_envelope_sha256 FROM outbox_events e JOIN outbox_deliveries d USING (event_id)"
        " WHERE d.attempt_count = 0 LIMIT 1",
    ),
    (
        "attempt_finishes",
        "a finish without its start",
        "core",
        "INSERT INTO outbox_delivery_attempt_finishes (attempt_id, outcome, retry_disposition)"
        " VALUES (gen_random_uuid(), 'lease_expired_unknown', 'retry')",
    ),
    (
        "attempt_numbers",
        "a hole in the numbers",
        "core",
        f"UPDATE outbox_delivery_attempt_starts SET attempt_no = 7 WHERE attempt_id = {DONE}",
    ),
    (
        "attempt_numbers",
        "a count beyond the starts",
        "core",
        "UPDATE outbox_deliveries SET attempt_count = 1, lease_token = 1 WHERE attempt_count = 0",
    ),
    (
        "attempt_open",
        "a lost attempt that was never finished",
        "core",
        "DELETE FROM outbox_delivery_attempt_finishes WHERE outcome = 'lease_expired_unknown'",
    ),
    (
        "attempt_open",
        "a finished attempt that is still leased",
        "core",
        "INSERT INTO outbox_delivery_attempt_finishes (attempt_id, outcome, retry_disposition)"
        " SELECT current_attempt_id, 'lease_expired_unknown', 'retry' FROM outbox_deliveries WHERE status = 'leased'",
    ),
    (
        "attempt_outcomes",
        "an acknowledged delivery whose attempt did not succeed",
        "core",
        "UPDATE outbox_delivery_attempt_finishes SET outcome = 'lease_expired_unknown', retry_disposition = 'retry'"
        f" WHERE attempt_id = {DONE}",
    ),
    (
        "attempt_outcomes",
        "a pending delivery that was acknowledged before",
        "core",
        "UPDATE outbox_delivery_attempt_finishes SET outcome = 'acknowledged', retry_disposition = 'complete',"
        " normalized_error_code = NULL WHERE attempt_id IN"
        " (SELECT current_attempt_id FROM outbox_deliveries WHERE status = 'pending')",
    ),
    (
        "acknowledged_receipt",
        "an ack that names another receipt",
        "core",
        "UPDATE outbox_deliveries SET ack_receipt_digest = repeat('0', 64) WHERE status = 'acknowledged'",
    ),
    (
        "acknowledged_receipt",
        "an ack of other bytes",
        "core",
        "UPDATE outbox_deliveries SET ack_event_envelope_sha256 = repeat('0', 64) WHERE status = 'acknowledged'",
    ),
    (
        "acknowledged_receipt",
        "a projection that the receipt is not of",
        "core",
        "WITH no_longer AS (SELECT 1) UPDATE outbox_deliveries SET ack_receipt_ref = 'elsewhere'"
        " WHERE status = 'acknowledged'",
    ),
    (
        "source_event",
        "an accepted event that nobody was told about",
        "core",
        "INSERT INTO operations_source_events (event_id, producer, event_type, schema_version, aggregate_id,"
        " aggregate_revision, event_envelope, event_envelope_digest_algorithm_version, event_envelope_sha256,"
        " delivery_set_version, delivery_set_definition_schema_version,"
        " delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest)"
        " SELECT event_id, 'billing', event_type, schema_version, aggregate_id, aggregate_revision, event_envelope,"
        " event_envelope_digest_algorithm_version, event_envelope_sha256, delivery_set_version,"
        " delivery_set_definition_schema_version, delivery_set_definition_digest_algorithm_version,"
        " delivery_set_definition_digest FROM outbox_events WHERE published_at IS NULL LIMIT 1",
    ),
    (
        "receipt_projection",
        "a receipt that the projection does not show",
        "core",
        "DELETE FROM pending_unlinked_reservations",
    ),
    (
        "receipt_projection",
        "a timeline entry without a receipt",
        "core",
        "INSERT INTO timeline_entries (operation_id, projection_version, occurred_at, event_id, event_type,"
        " event_schema_version, producer, aggregate_id, aggregate_revision, correlation_id)"
        " SELECT operation_id, projection_version, now(), '00000000-0000-7000-8000-000000000000', 'x@1', '1', 'core',"
        " 'x', 1, 'x' FROM operation_summaries LIMIT 1",
    ),
    (
        "operation_summary",
        "a summary of another account",
        "core",
        "UPDATE operation_summaries SET billing_account_id = 'another'",
    ),
    (
        "operation_reservation",
        "another amount than was reserved",
        "core",
        "UPDATE operation_summaries SET hold_amount_picos = 1",
    ),
    (
        "aggregate_revision",
        "a revision that was never applied",
        "core",
        "UPDATE projection_aggregates SET applied_revision = 5 WHERE applied_revision = 1 AND NOT has_open_gap",
    ),
    (
        "revision_gap",
        "a gap nobody is marked with",
        "core",
        "UPDATE projection_aggregates SET has_open_gap = false WHERE has_open_gap",
    ),
    (
        "exact_identifier",
        "an event that its id does not find",
        "core",
        "DELETE FROM exact_identifiers WHERE kind = 'event'",
    ),
    (
        "ledger_posting",
        "a posting that counts other entries",
        "billing",
        "UPDATE ledger_postings SET entry_count = 3 WHERE kind = 'top_up'",
    ),
    (
        "ledger_balance",
        "a balance that is not its entries",
        "billing",
        "UPDATE ledger_accounts SET balance_picos = balance_picos + 1 WHERE kind = 'wallet'",
    ),
    (
        "ledger_hold",
        "a hold over another amount",
        "billing",
        "UPDATE ledger_holds SET amount_picos = amount_picos + 1 WHERE hold_id IN (SELECT billing_reservation_id"
        " FROM billing_reservations WHERE state = 'open' AND confirmed_at IS NULL)",
    ),
    (
        "hold_reservation",
        "an open hold without a reservation",
        "billing",
        "DELETE FROM billing_reservations WHERE state = 'open' AND confirmed_at IS NULL",
    ),
    (
        "reservation_work",
        "a reservation without its fence",
        "billing",
        "DELETE FROM billing_finalization_fences WHERE billing_reservation_id IN (SELECT billing_reservation_id"
        " FROM billing_reservations WHERE state = 'open' AND confirmed_at IS NULL)",
    ),
    (
        "reservation_work",
        "work that does not recompute",
        "billing",
        "UPDATE billing_finalization_works SET candidate = candidate || ' '",
    ),
    (
        "run_whole",
        "a run without its second event",
        "core",
        "UPDATE wallet_reservations SET wallet_reserved_event_id = gen_random_uuid()",
    ),
    (
        "run_manifest",
        "a manifest that does not recompute",
        "core",
        "UPDATE run_admission_manifests SET candidate = candidate || ' '",
    ),
    (
        "admission_refusal",
        "a refusal that does not recompute",
        "core",
        "UPDATE admission_refusals SET candidate = candidate || ' '",
    ),
    (
        "run_reservation",
        "a run whose money was held on other terms",
        "billing",
        "UPDATE billing_reservations SET operation_id = operation_id || '-other', confirmed_at = NULL"
        " WHERE confirmed_at IS NOT NULL",
    ),
    (
        "reservation_outcome",
        "a reservation confirmed without a run",
        "billing",
        "UPDATE billing_reservations SET confirmed_at = now() WHERE state = 'open' AND confirmed_at IS NULL",
    ),
    (
        "reservation_outcome",
        "a reservation released on another refusal",
        "billing",
        "UPDATE billing_reservations SET admission_refusal_digest = repeat('0', 64) WHERE state = 'released'",
    ),
    (
        "token_audit",
        "a token whose state no audit entry tells",
        "metering",
        "UPDATE otlp_tokens SET state = 'unsettled', handed_over_at = NULL WHERE state = 'primary'",
    ),
    (
        "token_audit",
        "a revoked token that is accepted again",
        "metering",
        "UPDATE otlp_tokens SET state = 'superseded', revoked_at = NULL WHERE state = 'revoked'",
    ),
    (
        "token_audit",
        "an administrator's token nobody minted",
        "metering",
        "UPDATE administrator_tokens SET token_id = '00000000-0000-7000-8000-000000000001'",
    ),
    (
        "token_audit",
        "an audit entry that is gone",
        "metering",
        "DELETE FROM admin_audit_entries WHERE action = 'token_superseded'",
    ),
    *quota_breakage.BROKEN,
    *connector_breakage.BROKEN,
    *claims_breakage.BROKEN,
    (
        "stored_file",
        "a stored file of another length",
        "attachments",
        "UPDATE staged_file_intents SET size_bytes = size_bytes + 1 WHERE state = 'kept' AND action = 'place'",
    ),
    (
        "stored_file",
        "a stored file that is gone",
        "attachments",
        "DELETE FROM staged_file_intents WHERE state = 'kept' AND action = 'remove'",
    ),
    (
        "stored_stray",
        "a file that nobody stored",
        "attachments",
        "DELETE FROM staged_file_intents WHERE state = 'kept' AND action = 'place'",
    ),
]

BEHIND_A_CONSTRAINT: list[tuple[str, str, str, str, str, str]] = [
    (
        "attempt_finishes",
        "a second finish",
        "core",
        "outbox_delivery_attempt_finishes",
        "outbox_delivery_attempt_finishes_pkey",
        "INSERT INTO outbox_delivery_attempt_finishes SELECT * FROM outbox_delivery_attempt_finishes"
        " WHERE outcome = 'lease_expired_unknown'",
    ),
    (
        "delivery_lease",
        "a lease on a delivery that is not leased",
        "core",
        "outbox_deliveries",
        "outbox_delivery_lease_shape",
        "UPDATE outbox_deliveries SET lease_owner = 'somebody' WHERE status = 'pending'",
    ),
]

"""Many rows for pages to be fast on, written below the guards by the schema role of a test database.

Times spread over `days`, as in a database that has lived; one delivery in fifty waits, one in a hundred is quarantined.
"""

from django.db import connections, transaction

from config.owners import Owner

EVENTS = """
INSERT INTO outbox_events (
    event_id, event_type, schema_version, delivery_set_version, delivery_set_definition_schema_version,
    delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, aggregate_id, aggregate_revision,
    tenant_kind, tenant_id, workspace_id, correlation_id, operation_id, event_envelope,
    event_envelope_digest_algorithm_version, event_envelope_sha256, occurred_at, created_at, published_at)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i %% 4096), 3, '0') || 'a'
        || lpad(to_hex(i), 15, '0'))::uuid,
       %(type)s, split_part(%(type)s, '@', 2), '2026.1', '1', 'jcs-sha256-v1', repeat('0', 64), 'filled:' || i, 1,
       'organization', 'org:' || i %% 50, 'ws:1', 'corr:' || i, 'op:' || i, '{"payload":{"n":' || i || '}}',
       'jcs-sha256-v1', repeat('0', 64), at, at, at
  FROM (SELECT i, now() - (%(rows)s - i) * (%(days)s * interval '1 day') / %(rows)s AS at
          FROM generate_series(1, %(rows)s) i) x
"""
DELIVERIES = """
INSERT INTO outbox_deliveries (
    event_id, destination, delivery_set_version, event_type, schema_version, consumer_name, expected_receipt_type,
    expected_receipt_schema_version, mandatory, created_at, available_at, status, lease_owner, lease_expires_at,
    lease_token, attempt_count, current_attempt_id, delivered_at, ack_consumer_name, ack_receipt_type, ack_receipt_ref,
    ack_receipt_schema_version, ack_receipt_digest_algorithm_version, ack_receipt_digest,
    ack_event_envelope_digest_algorithm_version, ack_event_envelope_sha256)
SELECT event_id, %(destination)s, '2026.1', event_type, schema_version, 'filler', 'Receipt', '1', true, created_at,
       created_at, s, CASE s WHEN 'leased' THEN 'filler' END, CASE s WHEN 'leased' THEN now() END, 1, 1,
       md5(event_id::text)::uuid, a.at, a.filler, a.receipt, a.ref, a.one, a.algorithm, a.digest, a.algorithm, a.digest
  FROM (SELECT e.*, CASE WHEN right(e.aggregate_id, 2) = '00' THEN 'quarantined' WHEN right(e.aggregate_id, 2) = '50'
                         THEN 'pending' WHEN right(e.aggregate_id, 3) = '025' THEN 'leased' ELSE 'acknowledged' END AS s
          FROM outbox_events e WHERE e.aggregate_id LIKE 'filled:%%') e
  LEFT JOIN LATERAL (SELECT e.created_at AS at, 'filler' AS filler, 'Receipt' AS receipt, 'ref' AS ref, '1' AS one,
                            'jcs-sha256-v1' AS algorithm, repeat('0', 64) AS digest) a ON s = 'acknowledged'
"""
STARTS = """
INSERT INTO outbox_delivery_attempt_starts (
    attempt_id, event_id, destination, attempt_no, lease_token, lease_owner, started_at)
SELECT current_attempt_id, event_id, destination, 1, 1, 'filler', created_at FROM outbox_deliveries
 WHERE consumer_name = 'filler' AND status <> 'pending' ORDER BY created_at
"""
FINISHES = """
INSERT INTO outbox_delivery_attempt_finishes (
    attempt_id, finished_at, outcome, retry_disposition, normalized_error_code)
SELECT current_attempt_id, created_at + interval '20 ms',
       CASE status WHEN 'acknowledged' THEN 'acknowledged' ELSE 'non_retryable' END,
       CASE status WHEN 'acknowledged' THEN 'complete' ELSE 'quarantine' END,
       CASE status WHEN 'acknowledged' THEN NULL ELSE 'filled' END
  FROM outbox_deliveries
 WHERE consumer_name = 'filler' AND status IN ('acknowledged', 'quarantined') ORDER BY created_at
"""
QUARANTINE = """
INSERT INTO outbox_quarantine (
    event_id, destination, attempt_id, event_type, schema_version, reason, event_envelope_digest_algorithm_version,
    event_envelope_sha256, quarantined_at)
SELECT event_id, destination, current_attempt_id, event_type, schema_version, 'reason_' || lease_token %% 7,
       'jcs-sha256-v1', repeat('0', 64), created_at
  FROM outbox_deliveries WHERE consumer_name = 'filler' AND status = 'quarantined'
"""
TABLES = (
    "outbox_events",
    "outbox_deliveries",
    "outbox_delivery_attempt_starts",
    "outbox_delivery_attempt_finishes",
    "outbox_quarantine",
)


def fill(owner: Owner, *, rows: int, event_type: str, destination: str, days: int = 30) -> None:
    """`rows` events of one type with their delivery to one destination, attempts and quarantine; then analyze."""
    values: dict[str, int | str] = {"rows": rows, "type": event_type, "destination": destination, "days": days}
    alias = owner.schema_alias
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        for statement in (EVENTS, DELIVERIES, STARTS, FINISHES, QUARANTINE):
            cursor.execute(statement, values)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for table in TABLES:
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    with connections[alias].cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"VACUUM ANALYZE {table}")

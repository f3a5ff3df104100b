"""Receipts, sources and the read model of the operations projection, in core's database (O26, O29)."""

from collections import defaultdict

from config.owners import owner_named
from config.verify.check import Check, Tally, by_statement, snapshots
from config.verify.places import CORE
from upstream.admission.contracts import RUN_CREATED, WALLET_RESERVED

ALL_RECEIPTS = "SELECT count(*) FROM operations_projection_applied_receipts"

UNKNOWN_EVENTS = """
SELECT r.event_id::text,
       CASE WHEN coalesce(e.event_id, s.event_id) IS NULL THEN 'it has a receipt, and its event is not stored here'
            ELSE 'its receipt names other bytes, another pair or another definition' END
  FROM operations_projection_applied_receipts r
  LEFT JOIN outbox_events e ON r.producer = 'core' AND e.event_id = r.event_id
  LEFT JOIN operations_source_events s ON s.producer = r.producer AND s.event_id = r.event_id
 WHERE (r.event_envelope_sha256 = coalesce(e.event_envelope_sha256, s.event_envelope_sha256)
        AND r.event_type = coalesce(e.event_type, s.event_type)
        AND r.event_schema_version = coalesce(e.schema_version, s.schema_version)
        AND r.delivery_set_version = coalesce(e.delivery_set_version, s.delivery_set_version)
        AND r.delivery_set_definition_digest
            = coalesce(e.delivery_set_definition_digest, s.delivery_set_definition_digest)) IS NOT TRUE
"""

SOURCES = """
SELECT s.event_id::text, s.producer, s.event_envelope_sha256,
       encode(sha256(convert_to(s.event_envelope, 'UTF8')), 'hex') = s.event_envelope_sha256,
       EXISTS (SELECT FROM operations_projection_applied_receipts r
                WHERE r.event_id = s.event_id AND r.producer = s.producer
                  AND r.event_envelope_sha256 = s.event_envelope_sha256)
  FROM operations_source_events s WHERE s.producer = %s
"""
AT_PRODUCER = "SELECT event_id::text, event_envelope_sha256 FROM outbox_events WHERE event_id = ANY(%s::uuid[])"

NOT_SHOWN_ONCE = """
SELECT event_id::text,
       CASE WHEN r.consumer_name IS NULL THEN 'the projection shows it, and it has no receipt'
            WHEN t.number IS NULL THEN 'it has a receipt, and the projection does not show it'
            ELSE 'the projection shows it more than once' END
  FROM operations_projection_applied_receipts r
  FULL JOIN (SELECT event_id, projection_version, count(*) AS number FROM timeline_entries GROUP BY 1, 2) t
       USING (event_id, projection_version)
  FULL JOIN pending_unlinked_reservations u USING (event_id, projection_version)
 WHERE r.consumer_name IS NULL
    OR coalesce(t.number, 0) + coalesce((u.state IN ('pending', 'mismatched'))::int, 0) <> 1
"""

SUMMARIES_DIFFER = f"""
SELECT coalesce(s.operation_id, r.event_id::text),
       CASE WHEN s.operation_id IS NULL THEN 'its run event is applied, and it has no summary'
            WHEN r.event_id IS NULL THEN 'it has a summary, and its run event has no receipt'
            ELSE 'its summary says other than its run event' END
  FROM (SELECT * FROM operations_projection_applied_receipts WHERE event_type = '{RUN_CREATED}') r
  FULL JOIN operation_summaries s ON s.run_event_id = r.event_id AND s.projection_version = r.projection_version
  LEFT JOIN outbox_events e ON e.event_id = s.run_event_id
 WHERE (r.event_id IS NOT NULL AND s.operation_id = e.operation_id AND s.run_id = e.aggregate_id
        AND s.tenant_kind = e.tenant_kind AND s.tenant_id = e.tenant_id AND s.workspace_id = e.workspace_id
        AND s.project_id IS NOT DISTINCT FROM e.project_id AND s.correlation_id = e.correlation_id
        AND s.run_created_at = e.occurred_at
        AND s.billing_account_id = e.event_payload ->> 'billingAccountId'
        AND s.expected_reservation_id = e.event_payload ->> 'billingReservationId'
        AND s.run_admission_manifest_ref = e.event_payload ->> 'runAdmissionManifestRef'
        AND s.run_admission_manifest_digest = e.event_payload ->> 'runAdmissionManifestDigest') IS NOT TRUE
"""

LINKS_DIFFER = f"""
SELECT s.operation_id,
       CASE WHEN s.reservation_state = 'linked' THEN 'it is linked, and its timeline has no such reservation'
            ELSE 'its timeline shows a reservation that is not linked' END
  FROM operation_summaries s
  LEFT JOIN (SELECT operation_id, projection_version, min(event_id::text)::uuid AS event_id, count(*) AS number
               FROM timeline_entries WHERE event_type = '{WALLET_RESERVED}' GROUP BY 1, 2) t
         ON t.operation_id = s.operation_id AND t.projection_version = s.projection_version
  LEFT JOIN outbox_events e ON e.event_id = s.reservation_event_id
 WHERE (CASE WHEN s.reservation_state = 'linked'
             THEN t.number = 1 AND t.event_id = s.reservation_event_id
                  AND e.event_payload ->> 'runId' = s.run_id AND e.event_payload ->> 'currency' = s.currency
                  AND e.event_payload ->> 'holdAmountPicos' = s.hold_amount_picos::text
             ELSE t.number IS NULL END) IS NOT TRUE
"""

REVISIONS_DIFFER = """
WITH applied AS (
    SELECT r.producer COLLATE "C" AS producer, r.projection_name, r.projection_version,
           coalesce(e.aggregate_id, s.aggregate_id) COLLATE "C" AS aggregate_id, count(*) AS number,
           count(DISTINCT coalesce(e.aggregate_revision, s.aggregate_revision)) AS different,
           max(coalesce(e.aggregate_revision, s.aggregate_revision)) AS last
      FROM operations_projection_applied_receipts r
      LEFT JOIN outbox_events e ON r.producer = 'core' AND e.event_id = r.event_id
      LEFT JOIN operations_source_events s ON s.producer = r.producer AND s.event_id = r.event_id
     WHERE coalesce(e.event_id, s.event_id) IS NOT NULL
     GROUP BY 1, 2, 3, 4
)
SELECT aggregate_id, format('revision %s is applied, and it has %s receipts up to revision %s',
                            coalesce(a.applied_revision, 0), coalesce(p.number, 0), coalesce(p.last, 0))
  FROM projection_aggregates a
  FULL JOIN applied p USING (aggregate_id, producer, projection_name, projection_version)
 WHERE (coalesce(a.applied_revision, 0) = coalesce(p.last, 0)
        AND coalesce(p.number, 0) = coalesce(p.last, 0) AND coalesce(p.different, 0) = coalesce(p.last, 0)) IS NOT TRUE
"""

GAPS_DIFFER = """
SELECT coalesce(a.aggregate_id, g.aggregate_id),
       CASE WHEN g.aggregate_id IS NULL THEN 'it is marked with a gap that is not recorded'
            WHEN a.has_open_gap IS NOT TRUE THEN 'it has an open gap and is not marked with one'
            ELSE 'its gap is open, and nothing is missing before it any more' END
  FROM projection_aggregates a
  FULL JOIN (SELECT aggregate_id, producer, projection_name, projection_version, min(waiting_revision) AS waiting
               FROM revision_gaps WHERE state = 'open' GROUP BY 1, 2, 3, 4) g
       USING (aggregate_id, producer, projection_name, projection_version)
 WHERE (coalesce(a.has_open_gap, false) = (g.waiting IS NOT NULL)
        AND (g.waiting IS NULL OR g.waiting > a.applied_revision + 1)) IS NOT TRUE
"""

NOT_FOUND_BY_ID = """
SELECT r.event_id::text, CASE WHEN i.value IS NULL THEN 'it is applied, and its exact id finds nothing'
                              ELSE 'its exact id leads to another operation than its timeline' END
  FROM operations_projection_applied_receipts r
  LEFT JOIN exact_identifiers i
    ON i.value = r.event_id::text AND i.kind = 'event' AND i.event_id = r.event_id
   AND i.projection_version = r.projection_version
  LEFT JOIN timeline_entries t ON t.event_id = r.event_id AND t.projection_version = r.projection_version
 WHERE i.value IS NULL OR i.operation_id IS NOT NULL AND i.operation_id IS DISTINCT FROM t.operation_id
"""


def sources_are_their_producers() -> Tally:
    """Bytes, digest and receipt of every source event, and the same digest at its producer, who is read second."""
    tally = Tally()
    with snapshots(CORE[1]) as (core,):
        producers = [row[0] for row in core.rows("SELECT DISTINCT producer FROM operations_source_events")]
    for producer in producers:
        with snapshots(CORE[1], owner_named(producer).read_alias) as (core, origin):
            for batch in core.stream(SOURCES, [producer]):
                tally.examined += len(batch)
                stored: dict[str, str] = defaultdict(str, origin.rows(AT_PRODUCER, [[row[0] for row in batch]]))
                for event_id, _, sha256, hashes, has_receipt in batch:
                    if not hashes:
                        tally.found("core", event_id, "the stored bytes do not hash to their digest")
                    elif not has_receipt:
                        tally.found("core", event_id, "it is in the source store without a receipt for these bytes")
                    elif stored[event_id] != sha256:
                        tally.found("core", event_id, f"{producer} does not have it, or with other bytes")
    return tally


def _of_core(check_id: str, promise: str, *, examined: str, violations: str) -> Check:
    return Check(check_id, promise, by_statement(owners=(CORE,), examined=examined, violations=violations))


CHECKS = (
    _of_core(
        "receipt_event",
        "Every receipt belongs to an event that is stored with these bytes and that definition.",
        examined=ALL_RECEIPTS,
        violations=UNKNOWN_EVENTS,
    ),
    Check(
        "source_event",
        "Every source event hashes to its digest, has its receipt, and is the same at its producer.",
        sources_are_their_producers,
    ),
    _of_core(
        "receipt_projection",
        "Every receipt is shown by the projection exactly once, in a timeline or as unlinked, and nothing else is.",
        examined=ALL_RECEIPTS,
        violations=NOT_SHOWN_ONCE,
    ),
    _of_core(
        "operation_summary",
        "Every applied run event has exactly its summary.",
        examined="SELECT count(*) FROM operation_summaries",
        violations=SUMMARIES_DIFFER,
    ),
    _of_core(
        "operation_reservation",
        "A summary is linked exactly when its timeline shows its reservation, and says what that says.",
        examined="SELECT count(*) FROM operation_summaries",
        violations=LINKS_DIFFER,
    ),
    _of_core(
        "aggregate_revision",
        "The applied revision of an aggregate is the number of its receipts, without a hole.",
        examined="SELECT count(*) FROM projection_aggregates",
        violations=REVISIONS_DIFFER,
    ),
    _of_core(
        "revision_gap",
        "An aggregate is marked with a gap exactly while an event of it waits for a missing revision.",
        examined="SELECT count(*) FROM projection_aggregates",
        violations=GAPS_DIFFER,
    ),
    _of_core(
        "exact_identifier",
        "Every applied event is found by its exact id, in the operation whose timeline shows it.",
        examined=ALL_RECEIPTS,
        violations=NOT_FOUND_BY_ID,
    ),
)

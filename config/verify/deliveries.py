"""Events, their frozen definitions and their deliveries, in every producer's database (O2 to O6, O18)."""

from collections.abc import Iterator

import orjson

from config.verify.check import Check, Row, Snapshot, Tally, by_statement, snapshots
from config.verify.places import PRODUCERS
from outbox.contracts.canonical import NotCanonicalSafe, decode
from outbox.contracts.contract import ContractViolation, instant
from outbox.contracts.delivery_set import DeliverySetDefinition, DeliverySetMember

ALL_EVENTS = "SELECT count(*) FROM outbox_events"
ALL_DELIVERIES = "SELECT count(*) FROM outbox_deliveries"

UNLIKE_DEFINITION = """
SELECT e.event_id::text, 'no registered definition has the four-tuple that it froze'
  FROM outbox_events e
  LEFT JOIN delivery_set_versions v
    ON v.delivery_set_version = e.delivery_set_version
   AND v.delivery_set_definition_schema_version = e.delivery_set_definition_schema_version
   AND v.delivery_set_definition_digest_algorithm_version = e.delivery_set_definition_digest_algorithm_version
   AND v.delivery_set_definition_digest = e.delivery_set_definition_digest
 WHERE v.delivery_set_version IS NULL
UNION ALL
SELECT e.event_id::text, 'its mandatory delivery to ' || m.destination || ' is missing'
  FROM outbox_events e
  JOIN delivery_set_members m USING (delivery_set_version, event_type, schema_version)
  LEFT JOIN outbox_deliveries d ON d.event_id = e.event_id AND d.destination = m.destination
 WHERE m.mandatory AND d.event_id IS NULL
UNION ALL
SELECT e.event_id::text, 'its definition has no mandatory member for it'
  FROM outbox_events e
 WHERE NOT EXISTS (
       SELECT FROM delivery_set_members m
        WHERE m.delivery_set_version = e.delivery_set_version AND m.event_type = e.event_type
          AND m.schema_version = e.schema_version AND m.mandatory)
UNION ALL
SELECT d.event_id || ' to ' || d.destination,
       CASE WHEN e.event_id IS NULL THEN 'it has no event'
            WHEN m.destination IS NULL THEN 'its event has no such member'
            ELSE 'a frozen column differs from the member' END
  FROM outbox_deliveries d
  LEFT JOIN outbox_events e USING (event_id)
  LEFT JOIN delivery_set_members m
    ON m.delivery_set_version = e.delivery_set_version AND m.event_type = e.event_type
   AND m.schema_version = e.schema_version AND m.destination = d.destination
 WHERE (m.delivery_set_version = d.delivery_set_version AND m.event_type = d.event_type
        AND m.schema_version = d.schema_version AND m.consumer_name = d.consumer_name AND m.mandatory = d.mandatory
        AND m.expected_receipt_type = d.expected_receipt_type
        AND m.expected_receipt_schema_version = d.expected_receipt_schema_version
        AND m.projection_name IS NOT DISTINCT FROM d.required_projection_name
        AND m.projection_version IS NOT DISTINCT FROM d.required_projection_version) IS NOT TRUE
"""

FORGED = """
SELECT event_id::text, 'the stored text does not hash to the stored digest' FROM outbox_events
 WHERE event_envelope_sha256 IS DISTINCT FROM encode(sha256(convert_to(event_envelope, 'UTF8')), 'hex')
"""

WRONGLY_PUBLISHED = """
SELECT e.event_id::text,
       CASE WHEN e.published_at IS NULL THEN 'every mandatory delivery is acknowledged, yet it is not published'
            ELSE 'it is published, yet a mandatory delivery is not acknowledged' END
  FROM outbox_events e
  LEFT JOIN (SELECT event_id, bool_and(status = 'acknowledged') AS done FROM outbox_deliveries
              WHERE mandatory GROUP BY event_id) d USING (event_id)
 WHERE (e.published_at IS NOT NULL) IS DISTINCT FROM coalesce(d.done, false)
"""

WRONGLY_LEASED = """
SELECT event_id || ' to ' || destination,
       CASE WHEN status = 'leased' THEN 'it is leased without an owner, an end or an attempt'
            ELSE 'it is ' || status || ' and still carries a lease' END
  FROM outbox_deliveries
 WHERE (CASE WHEN status = 'leased'
             THEN lease_owner IS NOT NULL AND lease_expires_at IS NOT NULL AND current_attempt_id IS NOT NULL
             ELSE lease_owner IS NULL AND lease_expires_at IS NULL END) IS NOT TRUE
"""

QUARANTINE_DIFFERS = """
SELECT coalesce(d.event_id, q.event_id) || ' to ' || coalesce(d.destination, q.destination),
       CASE WHEN q.event_id IS NULL THEN 'it is quarantined without a quarantine row'
            WHEN d.status IS DISTINCT FROM 'quarantined' THEN 'it has a quarantine row and is not quarantined'
            ELSE 'its quarantine row names another attempt or other bytes' END
  FROM (SELECT * FROM outbox_deliveries WHERE status = 'quarantined') d
  FULL JOIN outbox_quarantine q ON q.event_id = d.event_id AND q.destination = d.destination
  LEFT JOIN outbox_events e ON e.event_id = d.event_id
 WHERE (q.attempt_id = d.current_attempt_id AND q.event_envelope_sha256 = e.event_envelope_sha256
        AND q.event_type = e.event_type AND q.schema_version = e.schema_version) IS NOT TRUE
"""

DEFINITIONS = """
SELECT v.delivery_set_version, v.delivery_set_definition_schema_version,
       v.delivery_set_definition_digest_algorithm_version, v.delivery_set_definition_digest, v.definition,
       (SELECT coalesce(json_agg(json_build_array(m.event_type, m.schema_version, m.destination, m.consumer_name,
                    m.mandatory, m.expected_receipt_type, m.expected_receipt_schema_version, m.projection_target_state,
                    m.projection_name, m.projection_version)), '[]')::text
          FROM delivery_set_members m WHERE m.delivery_set_version = v.delivery_set_version),
       (SELECT coalesce(json_agg(json_build_array(e.event_type, e.schema_version)), '[]')::text
          FROM delivery_set_events e WHERE e.delivery_set_version = v.delivery_set_version)
  FROM delivery_set_versions v
"""

ENVELOPES = """
SELECT event_id::text, event_envelope, event_type, schema_version, aggregate_id, aggregate_revision, tenant_kind,
       tenant_id, workspace_id, project_id, correlation_id, causation_id, operation_id, occurred_at
  FROM outbox_events
"""
SAID = (
    "eventType",
    "eventSchemaVersion",
    "aggregateId",
    "aggregateRevision",
    "tenantKind",
    "tenantId",
    "workspaceId",
    "projectId",
    "correlationId",
    "causationId",
    "operationId",
)
"""What the columns between the text and the time say, in the order of `ENVELOPES`."""


def definitions_recompute() -> Tally:
    """Parse every registered definition, and compare its columns and rows with what it says."""
    tally = Tally()
    for name, alias in PRODUCERS:
        with snapshots(alias) as (database,):
            for row in database.rows(DEFINITIONS):
                tally.examined += 1
                if problem := _definition_problem(row):
                    tally.found(name, row[0], problem)
    return tally


def _definition_problem(row: Row) -> str | None:
    *four, text, members, events = row
    try:
        definition = DeliverySetDefinition.parse(text.encode())
        definition.ensure_valid()
    except ContractViolation as error:
        return str(error)
    own = definition.reference
    if four != [own.ref, own.schema_version, own.digest_algorithm_version, own.digest]:
        return "its columns name another four-tuple than its text"
    if {tuple(item) for item in orjson.loads(members)} != set(map(_member_row, definition.members)):
        return "its member rows differ from its text"
    pairs = {(event.event_type, event.event_schema_version) for event in definition.applicable_events}
    return None if {tuple(item) for item in orjson.loads(events)} == pairs else "its event rows differ from its text"


def _member_row(member: DeliverySetMember) -> tuple[object, ...]:
    target = member.projection_target
    return (
        member.event_type,
        member.event_schema_version,
        member.destination,
        member.consumer_name,
        member.mandatory,
        member.expected_receipt_type,
        member.expected_receipt_schema_version,
        target.state,
        getattr(target, "projection_name", None),
        getattr(target, "projection_version", None),
    )


def envelopes_are_canonical() -> Tally:
    """Decode every envelope, encode it again, and compare bytes and columns."""
    tally = Tally()
    for name, alias in PRODUCERS:
        with snapshots(alias) as (database,):
            for row, problem in _envelope_problems(database, tally):
                tally.found(name, row[0], problem)
    return tally


def _envelope_problems(database: Snapshot, tally: Tally) -> Iterator[tuple[Row, str]]:
    for batch in database.stream(ENVELOPES):
        tally.examined += len(batch)
        for row in batch:
            event_id, text, *columns, occurred_at = row
            try:
                said = decode(text.encode())
            except NotCanonicalSafe as error:
                yield row, str(error)
                continue
            if (
                said.get("eventId") != event_id
                or [said.get(name) for name in SAID] != columns
                or instant(str(said.get("occurredAt"))) != occurred_at
            ):
                yield row, "the columns do not say what the envelope says"


CHECKS = (
    Check(
        "definition_digest",
        "Every registered delivery set recomputes to its digest, and its rows are what it says.",
        definitions_recompute,
    ),
    Check(
        "delivery_definition",
        "Deliveries are exactly those of the definition that their event froze, with its columns.",
        by_statement(owners=PRODUCERS, examined=ALL_DELIVERIES, violations=UNLIKE_DEFINITION),
    ),
    Check(
        "event_digest",
        "Every stored event hashes to its stored digest.",
        by_statement(owners=PRODUCERS, examined=ALL_EVENTS, violations=FORGED),
    ),
    Check(
        "event_canonical",
        "Every stored event is canonical, and its columns say what it says.",
        envelopes_are_canonical,
    ),
    Check(
        "event_published",
        "An event is published exactly when all its mandatory deliveries are acknowledged.",
        by_statement(owners=PRODUCERS, examined=ALL_EVENTS, violations=WRONGLY_PUBLISHED),
    ),
    Check(
        "delivery_lease",
        "A delivery carries a lease exactly while it is leased.",
        by_statement(owners=PRODUCERS, examined=ALL_DELIVERIES, violations=WRONGLY_LEASED),
    ),
    Check(
        "delivery_quarantine",
        "Quarantined deliveries and quarantine rows are the same set, with the same evidence.",
        by_statement(
            owners=PRODUCERS, examined="SELECT count(*) FROM outbox_quarantine", violations=QUARANTINE_DIFFERS
        ),
    ),
)

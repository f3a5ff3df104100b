"""Connectors: configuration, acts on secrets, and that what is counted is what was accepted (C4, C7).

An event commits before it is counted, and quota is held before an event commits. So events are looked for after usage
was read, and reservations after events were read.
"""

from uuid import UUID

from attachments.connectors.contracts import FinancialConnectorConfiguration
from attachments.connectors.ingest import DIMENSION, TOOL, operation
from config.owners import owner_named
from config.verify.check import Check, Row, Snapshot, Tally, by_statement, snapshots
from config.verify.content import content_problem
from config.verify.places import ATTACHMENTS, BILLING

BUSINESS = owner_named("attachments").name
CONFIGURATIONS = "SELECT connector_id, digest, candidate FROM financial_connectors"
ACTS = """
SELECT s.secret_id, 'its acts do not say that it is ' || t.state
  FROM financial_connector_secrets s CROSS JOIN LATERAL (
       SELECT 'current' AS state UNION SELECT s.state
        UNION SELECT 'superseded' WHERE s.superseded_at IS NOT NULL) t
 WHERE NOT EXISTS (SELECT FROM financial_connector_acts a WHERE a.secret_id = s.secret_id
                      AND a.connector_id = s.connector_id AND a.kind = 'secret_' || t.state)
 UNION ALL
SELECT s.secret_id, 'its acts say that it is revoked'
  FROM financial_connector_secrets s JOIN financial_connector_acts a USING (secret_id)
 WHERE a.kind = 'secret_revoked' AND s.state <> 'revoked'
"""
CONTENT = """
SELECT e.event_id, 'its digest or length is not that of its payload'
  FROM financial_connector_events e
 WHERE (e.body_sha256, e.body_bytes) IS DISTINCT FROM (encode(sha256(e.body), 'hex'), octet_length(e.body))
 UNION ALL
SELECT e.event_id, 'it is signed with a secret of another connector'
  FROM financial_connector_events e LEFT JOIN financial_connector_secrets s USING (secret_id)
 WHERE s.connector_id IS DISTINCT FROM e.connector_id
 UNION ALL
SELECT c.event_id, 'a conflict with it is signed with a secret of another connector, or has its own payload'
  FROM financial_connector_conflicts c
  LEFT JOIN financial_connector_events e USING (event_id)
  LEFT JOIN financial_connector_secrets s ON s.secret_id = c.secret_id
 WHERE (s.connector_id = e.connector_id AND c.body_sha256 <> e.body_sha256) IS NOT TRUE
"""
EVENTS = """
SELECT e.event_id, c.tenant_kind, c.tenant_id, c.provider_code, c.digest, e.webhook_id, e.body_sha256
  FROM financial_connector_events e JOIN financial_connectors c USING (connector_id)
"""
RESERVATIONS = """
SELECT operation_sha256, state FROM commercial_runtime_reservations WHERE operation_sha256 = ANY (%s)
"""
COUNTED = "SELECT count(*) FROM usage_meter_events WHERE tool = %s AND dimension = %s"
COUNTED_OF = """
SELECT count(*) FROM commercial_runtime_reservations r JOIN usage_meter_events u USING (reservation_id)
 WHERE r.operation_sha256 = ANY (%s)
"""


def configurations_recompute() -> Tally:
    """Prove the text of every configuration."""
    tally = Tally()
    with snapshots(ATTACHMENTS[1]) as (attachments,):
        for batch in attachments.stream(CONFIGURATIONS):
            tally.examined += len(batch)
            for connector, digest, text in batch:
                ref = f"financial-connector:{connector}"
                if problem := content_problem(FinancialConnectorConfiguration, ref=ref, digest=digest, candidate=text):
                    tally.found(ATTACHMENTS[0], connector, f"its configuration {problem}")
    return tally


def counted_events_were_accepted() -> Tally:
    """As much usage of connectors as there is, so much is that of stored events; billing is read first."""
    tally, found = Tally(), 0
    with snapshots(BILLING[1], ATTACHMENTS[1]) as (billing, attachments):
        (tally.examined,) = billing.one(COUNTED, [TOOL, DIMENSION])
        for batch in attachments.stream(EVENTS):
            found += billing.one(COUNTED_OF, [list(_operations(batch))])[0]
    if found != tally.examined:
        problem = f"{tally.examined} were counted, and {found} of them are those of stored events"
        tally.found(BILLING[0], f"{TOOL}/{DIMENSION}", problem, count=abs(tally.examined - found))
    return tally


def accepted_events_hold_their_quota() -> Tally:
    """No stored event has given its quota back; the events are read first."""
    tally = Tally()
    with snapshots(ATTACHMENTS[1], BILLING[1]) as (attachments, billing):
        for batch in attachments.stream(EVENTS):
            tally.examined += len(batch)
            for event, problem in _given_back(batch, billing):
                tally.found(ATTACHMENTS[0], event, problem)
    return tally


def _given_back(batch: list[Row], billing: Snapshot) -> list[tuple[UUID, str]]:
    events = _operations(batch)
    found = billing.rows(RESERVATIONS, [list(events)])
    problem = "it is accepted, and its quota was given back"
    return [(events[operation_sha256], problem) for operation_sha256, state in found if state == "released"]


def _operations(batch: list[Row]) -> dict[str, UUID]:
    """Events by the keyed hash under which commercial facts know them."""
    return {
        operation(
            tenant_kind=kind, tenant_id=tenant, provider_code=provider, configuration_digest=digest, webhook_id=said,
            body_sha256=body,
        ).fingerprint(business=BUSINESS): event
        for event, kind, tenant, provider, digest, said, body in batch
    }  # fmt: skip


CHECKS = (
    Check("connector_text", "Every configuration of a connector recomputes to its digest.", configurations_recompute),
    Check(
        "connector_acts",
        "Every step of every signing secret stands among the acts, and none that was revoked is accepted.",
        by_statement(
            owners=(ATTACHMENTS,), examined="SELECT count(*) FROM financial_connector_secrets", violations=ACTS
        ),
    ),
    Check(
        "connector_event",
        "Every event has the digest of its payload and a secret of its connector, and conflicts differ from it.",
        by_statement(
            owners=(ATTACHMENTS,), examined="SELECT count(*) FROM financial_connector_events", violations=CONTENT
        ),
    ),
    Check("connector_counted", "Every counted connector event is one that is stored.", counted_events_were_accepted),
    Check("connector_quota", "No stored connector event has given its quota back.", accepted_events_hold_their_quota),
)

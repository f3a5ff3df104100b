"""Runs, their manifests and events at core, and their reservations at billing.

Billing holds the money first and core commits the run second. So the money of an admitted run is looked for after the
run was read, and the run of a confirmed reservation after the reservation was read. A reservation that nobody has
confirmed yet is work in flight; it is a total, not a violation.
"""

from config.verify.check import Check, Row, Snapshot, Tally, by_statement, snapshots
from config.verify.content import content_problem
from config.verify.places import BILLING, CORE
from upstream.admission.contracts import RUN_CREATED, WALLET_RESERVED, AdmissionRefusal, RunAdmissionManifest

CARRIES = """
       {event}.event_payload ->> 'runAdmissionManifestRef' = m.run_admission_manifest_ref
   AND {event}.event_payload ->> 'runAdmissionManifestSchemaVersion' = m.schema_version
   AND {event}.event_payload ->> 'runAdmissionManifestDigestAlgorithmVersion' = m.digest_algorithm_version
   AND {event}.event_payload ->> 'runAdmissionManifestDigest' = m.digest
   AND {event}.operation_id = r.operation_id AND {event}.event_payload ->> 'runId' = r.run_id
   AND {event}.event_payload ->> 'billingReservationId' = r.billing_reservation_id
"""
NOT_WHOLE = f"""
SELECT r.run_id, CASE WHEN o.operation_id IS NULL THEN 'its operation has no admitted outcome for it'
                      WHEN m.run_id IS NULL THEN 'it has no manifest'
                      WHEN w.run_id IS NULL THEN 'it has no wallet reservation'
                      WHEN c.event_id IS NULL OR x.event_id IS NULL THEN 'one of its events is missing'
                      ELSE 'its events do not carry its manifest' END
  FROM runs r
  LEFT JOIN admission_outcomes o
    ON o.operation_id = r.operation_id AND o.run_id = r.run_id AND o.state = 'admitted'
  LEFT JOIN run_admission_manifests m
    ON m.run_admission_manifest_ref = r.run_admission_manifest_id AND m.run_id = r.run_id
  LEFT JOIN wallet_reservations w ON w.billing_reservation_id = r.billing_reservation_id AND w.run_id = r.run_id
  LEFT JOIN outbox_events c ON c.event_id = r.run_created_event_id AND c.event_type = '{RUN_CREATED}'
  LEFT JOIN outbox_events x ON x.event_id = w.wallet_reserved_event_id AND x.event_type = '{WALLET_RESERVED}'
 WHERE (o.operation_id IS NOT NULL AND m.run_id IS NOT NULL AND w.run_id IS NOT NULL
        AND {CARRIES.format(event="c")} AND {CARRIES.format(event="x")}
        AND w.billing_account_id = r.billing_account_id
        AND c.event_payload ->> 'billingAccountId' = r.billing_account_id
        AND x.event_payload ->> 'holdAmountPicos' = w.hold_amount_picos::text
        AND x.event_payload ->> 'currency' = w.currency AND x.causation_id = c.event_id::text) IS NOT TRUE
UNION ALL
SELECT o.operation_id, 'its outcome is admitted, and its run does not exist'
  FROM admission_outcomes o LEFT JOIN runs r ON r.run_id = o.run_id AND r.operation_id = o.operation_id
 WHERE o.state = 'admitted' AND r.run_id IS NULL
UNION ALL
SELECT m.run_admission_manifest_ref, 'no run has this manifest'
  FROM run_admission_manifests m LEFT JOIN runs r ON r.run_admission_manifest_id = m.run_admission_manifest_ref
 WHERE r.run_id IS NULL
"""
MANIFESTS = "SELECT run_admission_manifest_ref, digest, candidate FROM run_admission_manifests"
REFUSALS = """
SELECT o.operation_id, s.admission_refusal_ref, s.digest, s.candidate
  FROM admission_outcomes o LEFT JOIN admission_refusals s ON s.admission_refusal_ref = o.admission_refusal_id
 WHERE o.state = 'refused'
"""

RUNS = """
SELECT r.run_id, r.operation_id, r.billing_reservation_id, r.billing_account_id, w.currency,
       w.hold_amount_picos::text, m.run_admission_manifest_ref, m.schema_version, m.digest_algorithm_version, m.digest
  FROM runs r
  JOIN wallet_reservations w ON w.billing_reservation_id = r.billing_reservation_id
  JOIN run_admission_manifests m ON m.run_admission_manifest_ref = r.run_admission_manifest_id
"""
RESERVATIONS_OF_RUNS = """
SELECT b.run_id, b.operation_id, b.billing_reservation_id, b.billing_account_id, h.currency, h.amount_picos::text,
       b.run_admission_manifest_ref, b.run_admission_manifest_schema_version,
       b.run_admission_manifest_digest_algorithm_version, b.run_admission_manifest_digest, b.state
  FROM billing_reservations b JOIN ledger_holds h ON h.hold_id = b.billing_reservation_id
 WHERE b.run_id = ANY(%s)
"""

DECIDED = """
SELECT billing_reservation_id, operation_id, state, run_admission_manifest_digest, admission_refusal_ref,
       admission_refusal_digest
  FROM billing_reservations WHERE confirmed_at IS NOT NULL OR state = 'released'
"""
OUTCOMES = """
SELECT o.operation_id, o.state, coalesce(m.digest, s.digest), s.admission_refusal_ref
  FROM admission_outcomes o
  LEFT JOIN run_admission_manifests m ON m.run_id = o.run_id
  LEFT JOIN admission_refusals s ON s.admission_refusal_ref = o.admission_refusal_id
 WHERE o.operation_id = ANY(%s)
"""


def manifests_recompute() -> Tally:
    """Prove the manifest of every run."""
    tally = Tally()
    with snapshots(CORE[1]) as (core,):
        for batch in core.stream(MANIFESTS):
            tally.examined += len(batch)
            for ref, digest, text in batch:
                if problem := content_problem(RunAdmissionManifest, ref=ref, digest=digest, candidate=text):
                    tally.found("core", ref, f"the manifest {problem}")
    return tally


def refusals_recompute() -> Tally:
    """Prove the refusal of every refused operation."""
    tally = Tally()
    with snapshots(CORE[1]) as (core,):
        for batch in core.stream(REFUSALS):
            tally.examined += len(batch)
            for operation, ref, digest, text in batch:
                if ref is None:
                    tally.found("core", operation, "it is refused without a stored refusal")
                elif problem := content_problem(AdmissionRefusal, ref=ref, digest=digest, candidate=text):
                    tally.found("core", operation, f"its refusal {problem}")
    return tally


def runs_have_reservations() -> Tally:
    """Look up the reservation and hold of every run; core is read first."""
    tally = Tally()
    with snapshots(CORE[1], BILLING[1]) as (core, billing):
        for batch in core.stream(RUNS):
            tally.examined += len(batch)
            reserved = {row[0]: row for row in billing.rows(RESERVATIONS_OF_RUNS, [[row[0] for row in batch]])}
            for run in batch:
                found = reserved.get(run[0])
                if found is None:
                    tally.found("core", run[0], "billing has no reservation with a hold for it")
                elif found[:-1] != run:
                    tally.found("core", run[0], "its reservation at billing has other terms")
                elif found[-1] != "open":
                    tally.found("core", run[0], f"it is admitted, and its reservation is {found[-1]}")
    return tally


def decided_reservations_have_outcomes() -> Tally:
    """Look up core's outcome of every confirmed or released reservation; billing is read first."""
    tally = Tally()
    with snapshots(BILLING[1], CORE[1]) as (billing, core):
        for batch in billing.stream(DECIDED):
            tally.examined += len(batch)
            for row, problem in _undecided(batch, core):
                tally.found("billing", row[0], problem)
    return tally


def _undecided(batch: list[Row], core: Snapshot) -> list[tuple[Row, str]]:
    outcomes = {row[0]: row[1:] for row in core.rows(OUTCOMES, [[row[1] for row in batch]])}
    found = []
    for row in batch:
        _, operation, state, manifest_digest, refusal_ref, refusal_digest = row
        due = ("refused", refusal_digest, refusal_ref) if state == "released" else ("admitted", manifest_digest, None)
        if outcomes.get(operation) != due:
            what = "released without core's refusal" if state == "released" else "confirmed, and core has no such run"
            found.append((row, f"it is {what}"))
    return found


CHECKS = (
    Check(
        "run_whole",
        "Every run stands with its outcome, manifest, wallet reservation and both events, which carry the manifest.",
        by_statement(owners=(CORE,), examined="SELECT count(*) FROM runs", violations=NOT_WHOLE),
    ),
    Check("run_manifest", "Every run admission manifest recomputes to its digest.", manifests_recompute),
    Check("admission_refusal", "Every refused operation has a refusal that recomputes.", refusals_recompute),
    Check(
        "run_reservation",
        "Every admitted run has exactly one open reservation at billing, on the same terms.",
        runs_have_reservations,
    ),
    Check(
        "reservation_outcome",
        "A confirmed reservation has its run at core, a released one its refusal.",
        decided_reservations_have_outcomes,
    ),
)

"""The ledger, its holds, and the reservations that they are for, in billing's database (M4).

The sums are computed here from the entries alone, and not by the code that posts them.
"""

import orjson

from billing.finalization.contracts import BillingFinalizationWork
from config.verify.check import Check, Row, Tally, by_statement, snapshots
from config.verify.content import content_problem
from config.verify.places import BILLING

POSTINGS = """
SELECT p.reference, CASE WHEN count(e.line) <> p.entry_count THEN 'it has other entries than it counts'
                         ELSE 'its entries in ' || e.currency || ' sum to ' || sum(e.amount_picos) END
  FROM ledger_postings p LEFT JOIN ledger_entries e ON e.posting_id = p.reference
 GROUP BY p.reference, p.entry_count, e.currency
HAVING (sum(e.amount_picos) = 0 AND count(e.line) = p.entry_count) IS NOT TRUE
"""
BALANCES = """
SELECT coalesce(a.ledger_account_id, e.ledger_account_id),
       format('its balance is %s, and its entries sum to %s', a.balance_picos, coalesce(e.picos, 0))
  FROM ledger_accounts a
  FULL JOIN (SELECT ledger_account_id, sum(amount_picos) AS picos FROM ledger_entries GROUP BY 1) e
       USING (ledger_account_id)
 WHERE a.balance_picos IS DISTINCT FROM coalesce(e.picos, 0)
"""
HOLDS = """
SELECT coalesce(h.hold_id, e.hold_id),
       format('it is %s over %s, and its entries sum to %s', h.state, h.amount_picos, coalesce(e.picos, 0))
  FROM ledger_holds h
  FULL JOIN (SELECT hold_id, sum(amount_picos) AS picos FROM ledger_entries WHERE hold_id IS NOT NULL GROUP BY 1) e
       USING (hold_id)
 WHERE CASE h.state WHEN 'held' THEN h.amount_picos ELSE 0 END IS DISTINCT FROM coalesce(e.picos, 0)
"""
RESERVATIONS = """
SELECT coalesce(r.billing_reservation_id, h.hold_id),
       format('the reservation is %s, and its hold is %s', coalesce(r.state, 'missing'), coalesce(h.state, 'missing'))
  FROM billing_reservations r FULL JOIN ledger_holds h ON h.hold_id = r.billing_reservation_id
 WHERE (r.billing_account_id = h.billing_account_id AND (r.state = 'open') = (h.state = 'held')) IS NOT TRUE
"""
WORKS = """
SELECT r.billing_reservation_id, r.run_id, r.run_admission_manifest_ref, r.run_admission_manifest_digest,
       f.billing_finalization_fence_id, f.run_id, f.coordination_state, f.active_work_id,
       (SELECT w.billing_finalization_work_ref FROM billing_finalization_works w
         WHERE w.fence_id = f.billing_finalization_fence_id AND w.work_generation = f.latest_work_generation),
       w.billing_finalization_work_ref, w.digest, w.candidate
  FROM billing_reservations r
  LEFT JOIN billing_finalization_fences f ON f.billing_reservation_id = r.billing_reservation_id
  LEFT JOIN billing_finalization_works w ON w.fence_id = f.billing_finalization_fence_id AND w.work_generation = 1
"""


def reservations_have_work() -> Tally:
    """Prove the first work under the fence of every reservation."""
    tally = Tally()
    with snapshots(BILLING[1]) as (billing,):
        for batch in billing.stream(WORKS):
            tally.examined += len(batch)
            for row in batch:
                if problem := _work_problem(row):
                    tally.found("billing", row[0], problem)
    return tally


def _work_problem(row: Row) -> str | None:
    reservation, run, manifest, manifest_digest, fence, fenced_run, state, active, latest, ref, digest, text = row
    if fence is None or fenced_run != run:
        return "it has no finalization fence of its run"
    if ref is None:
        return "its fence has no first-generation work"
    if problem := content_problem(BillingFinalizationWork, ref=ref, digest=digest, candidate=text):
        return f"its first work {problem}"
    said = orjson.loads(text)
    due = (reservation, run, manifest, manifest_digest, fence, 1)
    names = ("billingReservationId", "runId", "runAdmissionManifestRef", "runAdmissionManifestDigest")
    if tuple(said.get(name) for name in (*names, "billingFinalizationFenceId", "workGeneration")) != due:
        return "its first work names another reservation, run, manifest or fence"
    return None if (active == latest if state == "pending" else active is None) else "its active work is not its latest"


def _of_billing(check_id: str, promise: str, *, table: str, violations: str) -> Check:
    run = by_statement(owners=(BILLING,), examined=f"SELECT count(*) FROM {table}", violations=violations)
    return Check(check_id, promise, run)


CHECKS = (
    _of_billing(
        "ledger_posting",
        "The entries of every posting sum to zero per currency, and are as many as it counts.",
        table="ledger_postings",
        violations=POSTINGS,
    ),
    _of_billing(
        "ledger_balance",
        "Every balance is the sum of its entries.",
        table="ledger_accounts",
        violations=BALANCES,
    ),
    _of_billing(
        "ledger_hold",
        "What lies on the held account for a hold is its amount while it is held, and nothing afterwards.",
        table="ledger_holds",
        violations=HOLDS,
    ),
    _of_billing(
        "hold_reservation",
        "Open holds and open reservations are the same set.",
        table="billing_reservations",
        violations=RESERVATIONS,
    ),
    Check(
        "reservation_work",
        "Every reservation has its fence, and under it first work that recomputes and names it.",
        reservations_have_work,
    ),
)

"""Quota: plans, what is taken of each period, what was used, and the markers by which work was judged (C1, C2, C9).

A marker is committed before the reservation that it ends, and a reservation before its marker. So markers of ended
generations are looked for after billing was read, and the reservation of a marker after the business was read.
"""

from collections import defaultdict
from uuid import UUID

import orjson

from billing.commercial.contracts import CommercialPlan
from config.owners import with_markers
from config.verify.check import Check, Row, Snapshot, Tally, by_statement, snapshots
from config.verify.content import content_problem
from config.verify.places import BILLING

PLANS = """
SELECT p.plan_ref, p.digest, p.candidate,
       (SELECT jsonb_agg(jsonb_build_object('name', e.name, 'quantityBasis', e.quantity_basis,
                                            'hardLimit', e.hard_limit) ORDER BY e.name COLLATE "C")::text
          FROM commercial_entitlements e WHERE e.plan_id = p.plan_ref),
       (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'tool', m.tool, 'dimension', m.dimension, 'quantityBasis', m.quantity_basis,
                   'entitlement', substr(m.entitlement_id, length(m.plan_id) + 2),
                   'cost', CASE WHEN m.cost_price_book IS NOT NULL THEN jsonb_build_object(
                       'priceBook', m.cost_price_book, 'currency', m.cost_currency,
                       'chargeDimensionKey', m.cost_dimension) END))
               ORDER BY m.tool COLLATE "C", m.dimension COLLATE "C")::text
          FROM commercial_meters m WHERE m.plan_id = p.plan_ref)
  FROM commercial_plans p
"""
PERIODS = """
SELECT p.period_id, 'it is not of its subscription''s tenant, plan, limit and time'
  FROM commercial_entitlement_periods p
  LEFT JOIN commercial_subscriptions s USING (subscription_id)
  LEFT JOIN commercial_entitlements e ON e.entitlement_id = p.entitlement_id AND e.plan_id = s.plan_id
 WHERE (p.tenant_id = s.tenant_id AND p.hard_limit = e.hard_limit AND p.starts_at >= s.starts_at
        AND p.ends_at <= coalesce(s.ends_at, 'infinity')) IS NOT TRUE
UNION ALL
SELECT p.period_id, 'it overlaps the one before it'
  FROM (SELECT period_id, starts_at,
               lag(ends_at) OVER (PARTITION BY subscription_id, entitlement_id ORDER BY starts_at) AS before
          FROM commercial_entitlement_periods) p
 WHERE p.starts_at < p.before
"""
COUNTERS = """
SELECT p.period_id,
       format('%s of %s are taken, and %s are used and %s held', p.taken_quantity, p.hard_limit, coalesce(u.used, 0),
              coalesce(h.held, 0))
  FROM commercial_entitlement_periods p
  FULL JOIN (SELECT period_id, sum(quantity) AS used FROM commercial_runtime_reservations WHERE state = 'settled'
              GROUP BY 1) u USING (period_id)
  FULL JOIN (SELECT period_id, sum(quantity) AS held FROM commercial_runtime_reservations WHERE state = 'reserved'
              GROUP BY 1) h USING (period_id)
 WHERE (p.taken_quantity = coalesce(u.used, 0) + coalesce(h.held, 0)
        AND p.taken_quantity BETWEEN 0 AND p.hard_limit) IS NOT TRUE
"""
USAGE = """
SELECT coalesce(r.reservation_id, u.reservation_id), 'its usage is missing or says something else'
  FROM (SELECT * FROM commercial_runtime_reservations WHERE state = 'settled') r
  FULL JOIN usage_meter_events u USING (reservation_id)
  LEFT JOIN commercial_meters m ON m.meter_id = u.meter_id
 WHERE (r.quantity = u.quantity AND r.generation = u.generation AND r.operation_sha256 = u.operation_sha256
        AND r.period_id = u.period_id AND r.meter_id = u.meter_id AND r.as_of = u.occurred_at
        AND r.ended_by = u.source AND r.provider_code IS NOT DISTINCT FROM u.provider_code
        AND m.entitlement_id = u.entitlement_id AND (m.tool, m.dimension, m.quantity_basis)
          = (u.tool, u.dimension, u.quantity_basis)) IS NOT TRUE
UNION ALL
SELECT r.reservation_id, 'it takes from another entitlement than its meter''s, or from another time than its own'
  FROM commercial_runtime_reservations r
  LEFT JOIN commercial_entitlement_periods p USING (period_id)
  LEFT JOIN commercial_subscriptions s USING (subscription_id)
  LEFT JOIN commercial_meters m USING (meter_id)
 WHERE (m.entitlement_id = p.entitlement_id AND r.as_of >= p.starts_at
        AND (r.as_of < p.ends_at OR p.ends_at = s.ends_at)) IS NOT TRUE
"""
COSTS = """
SELECT coalesce(r.reservation_id, c.usage_id), 'its cost is missing, or not its units at its unit cost'
  FROM (SELECT * FROM commercial_runtime_reservations WHERE state = 'settled' AND unit_cost_picos IS NOT NULL) r
  FULL JOIN commercial_cost_events c ON c.usage_id = r.reservation_id
 WHERE (c.quantity = r.quantity AND c.unit_cost_picos = r.unit_cost_picos AND c.currency = r.cost_currency
        AND c.price_book_ref = r.cost_price_book_ref AND c.amount_picos = r.quantity * r.unit_cost_picos) IS NOT TRUE
"""
ENDED = """
SELECT reservation_id, generation, state FROM commercial_runtime_reservations
 WHERE business = %s AND (state <> 'reserved' OR generation > 1)
"""
MARKERS = """
SELECT subject_id, generation, verdict FROM commercial_markers WHERE kind = 'reservation' AND subject_id = ANY (%s)
"""
COMMITTED = "SELECT subject_id, generation FROM commercial_markers WHERE kind = 'reservation' AND verdict = 'committed'"
RESERVATIONS = """
SELECT reservation_id, generation, state, business FROM commercial_runtime_reservations WHERE reservation_id = ANY (%s)
"""


def plans_recompute() -> Tally:
    """Prove the text of every plan, and that its rows say what it says."""
    tally = Tally()
    with snapshots(BILLING[1]) as (billing,):
        for batch in billing.stream(PLANS):
            tally.examined += len(batch)
            for ref, digest, text, *stored in batch:
                if problem := content_problem(CommercialPlan, ref=ref, digest=digest, candidate=text):
                    tally.found("billing", ref, f"the plan {problem}")
                    continue
                said = orjson.loads(text)
                if [said["entitlements"], said["meters"]] != [orjson.loads(rows or "[]") for rows in stored]:
                    tally.found("billing", ref, "its entitlements or meters are not those of its text")
    return tally


def ended_generations_have_markers() -> Tally:
    """Look up the marker of every generation that ended; billing is read first."""
    tally = Tally()
    for owner in with_markers():
        with snapshots(BILLING[1], owner.read_alias) as (billing, business):
            for batch in billing.stream(ENDED, [owner.name]):
                tally.examined += len(batch)
                for reservation, problem in _unmarked(batch, business):
                    tally.found("billing", reservation, problem)
    return tally


def _unmarked(batch: list[Row], business: Snapshot) -> list[tuple[UUID, str]]:
    verdicts: defaultdict[UUID, dict[int, str]] = defaultdict(dict)
    for subject, generation, verdict in business.rows(MARKERS, [[row[0] for row in batch]]):
        verdicts[subject][generation] = verdict
    found = []
    for reservation, generation, state in batch:
        due = dict.fromkeys(range(1, generation), "refused")
        if state != "reserved":
            due[generation] = "committed" if state == "settled" else "refused"
        wrong = [number for number, verdict in due.items() if verdicts[reservation].get(number) != verdict]
        if wrong:
            found.append((reservation, f"the marker of generation {wrong[0]} is not {due[wrong[0]]}"))
    return found


def committed_markers_have_reservations() -> Tally:
    """Look up the reservation of every commit; the business is read first."""
    tally = Tally()
    for owner in with_markers():
        with snapshots(owner.read_alias, BILLING[1]) as (business, billing):
            for batch in business.stream(COMMITTED):
                tally.examined += len(batch)
                found = {row[0]: row[1:] for row in billing.rows(RESERVATIONS, [[row[0] for row in batch]])}
                for subject, generation in batch:
                    standing = found.get(subject)
                    if standing is None:
                        tally.found(owner.name, subject, "billing has no reservation for this commit")
                    elif (standing[0], standing[2]) != (generation, owner.name) or standing[1] == "released":
                        tally.found(owner.name, subject, f"it committed, and generation {standing[0]} is {standing[1]}")
    return tally


def _of_billing(check_id: str, promise: str, *, table: str, violations: str) -> Check:
    run = by_statement(owners=(BILLING,), examined=f"SELECT count(*) FROM {table}", violations=violations)
    return Check(check_id, promise, run)


CHECKS = (
    Check("quota_plan", "Every plan recomputes to its digest, and its rows are those of its text.", plans_recompute),
    _of_billing(
        "quota_period",
        "Periods are of their subscription's tenant, plan, limit and time, and never overlap.",
        table="commercial_entitlement_periods",
        violations=PERIODS,
    ),
    _of_billing(
        "quota_counter",
        "What a period counts as taken is what is used and held of it, and never more than its limit.",
        table="commercial_entitlement_periods",
        violations=COUNTERS,
    ),
    _of_billing(
        "quota_usage",
        "Settled reservations and usage are the same set and say the same, by the right meter and period.",
        table="commercial_runtime_reservations",
        violations=USAGE,
    ),
    _of_billing(
        "quota_cost",
        "Each usage with a unit cost has its cost, exactly, and no other has one.",
        table="commercial_cost_events",
        violations=COSTS,
    ),
    Check(
        "quota_marker",
        "Every generation that ended has the marker that says so: committed if counted, refused if given back.",
        ended_generations_have_markers,
    ),
    Check(
        "marker_reservation",
        "Every commit that left a reservation's marker has that reservation, held or counted.",
        committed_markers_have_reservations,
    ),
)

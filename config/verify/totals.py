"""How much of everything there is, for whoever reads the report. No figure here is a violation."""

from config.owners import consumers
from config.verify.check import snapshots
from config.verify.places import BILLING, CORE, PRODUCERS, TELEMETRY

OF_PRODUCER = """
SELECT (SELECT count(*) FROM outbox_events), (SELECT count(*) FROM outbox_events WHERE published_at IS NOT NULL),
       count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'leased'),
       count(*) FILTER (WHERE status = 'acknowledged'), count(*) FILTER (WHERE status = 'quarantined'),
       count(*) FILTER (WHERE status = 'leased' AND lease_expires_at <= now()),
       count(*) FILTER (WHERE status IN ('pending', 'leased') AND destination <> ALL(%s)),
       (SELECT count(*) FROM outbox_delivery_attempt_starts)
  FROM outbox_deliveries
"""
OF_PRODUCER_NAMES = (
    "events",
    "published",
    "pending",
    "leased",
    "acknowledged",
    "quarantined",
    "expired_leases",
    "awaiting_consumer",
    "attempts",
)
OF_CORE = """
SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM operations_projection_applied_receipts),
       (SELECT count(*) FROM operation_summaries), (SELECT count(*) FROM timeline_entries),
       (SELECT count(*) FROM revision_gaps WHERE state = 'open'),
       (SELECT count(*) FROM pending_unlinked_reservations WHERE state = 'pending')
"""
OF_CORE_NAMES = ("runs", "receipts", "operations", "timeline_entries", "open_gaps", "unlinked_reservations")
OF_BILLING = """
SELECT count(*) FILTER (WHERE state = 'open'),
       count(*) FILTER (WHERE state = 'open' AND confirmed_at IS NULL),
       (SELECT count(*) FROM ledger_postings), (SELECT count(*) FROM usage_meter_events),
       (SELECT count(*) FROM commercial_runtime_reservations WHERE state = 'reserved')
  FROM billing_reservations
"""
OF_BILLING_NAMES = ("open_reservations", "unconfirmed_reservations", "postings", "usage_events", "held_quota")

OF_TELEMETRY = """
SELECT (SELECT count(*) FROM llm_billing_events), (SELECT count(*) FROM resource_utilization_events),
       (SELECT count(*) FROM telemetry_conflicts), (SELECT coalesce(sum(dropped), 0) FROM telemetry_drops),
       (SELECT count(*) FROM consumption_windows_dirty WHERE marked_generation > cleared_generation),
       count(*) FILTER (WHERE orphan_reason IS NOT NULL), coalesce(sum(events), 0), coalesce(sum(prompt_tokens), 0),
       coalesce(sum(completion_tokens), 0),
       (SELECT count(*) FROM consumption_charges WHERE state = 'posted'),
       (SELECT count(*) FROM consumption_charges WHERE state IN ('due', 'refused', 'conflicting'))
  FROM consumption_lines
"""
OF_TELEMETRY_NAMES = (
    "llm_events",
    "resource_events",
    "conflicting_events",
    "dropped_records",
    "windows_to_sum_up",
    "orphan_lines",
    "consumed_events",
    "consumed_prompt_tokens",
    "consumed_completion_tokens",
    "posted_charges",
    "unposted_charges",
)


def totals() -> dict[str, int]:
    """Figures of all databases, each from a snapshot of its own: while work goes on they need not add up."""
    bound = [consumer.destination for _, consumer in consumers() if consumer.handler]
    found = dict.fromkeys(("runs", *OF_PRODUCER_NAMES), 0)
    for _, alias in PRODUCERS:
        with snapshots(alias) as (database,):
            for name, value in zip(OF_PRODUCER_NAMES, database.one(OF_PRODUCER, [bound]), strict=True):
                found[name] += int(value)
    with snapshots(CORE[1]) as (core,):
        found |= zip(OF_CORE_NAMES, map(int, core.one(OF_CORE)), strict=True)
    with snapshots(BILLING[1]) as (billing,):
        found |= zip(OF_BILLING_NAMES, map(int, billing.one(OF_BILLING)), strict=True)
    with snapshots(TELEMETRY[1]) as (telemetry,):
        found |= zip(OF_TELEMETRY_NAMES, map(int, telemetry.one(OF_TELEMETRY)), strict=True)
    found["deliveries"] = sum(found[name] for name in ("pending", "leased", "acknowledged", "quarantined"))
    return found

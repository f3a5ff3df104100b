"""The ways to break what is proven of quota, in the form of `tests.verify.breakage`."""

BROKEN: list[tuple[str, str, str, str]] = [
    (
        "quota_plan",
        "a plan that does not recompute",
        "billing",
        "UPDATE commercial_plans SET candidate = candidate || ' '",
    ),
    (
        "quota_plan",
        "a meter that its plan does not name",
        "billing",
        "UPDATE commercial_meters SET cost_price_book = 'other-costs' WHERE cost_price_book IS NOT NULL",
    ),
    (
        "quota_period",
        "a limit that the plan does not give",
        "billing",
        "UPDATE commercial_entitlement_periods SET hard_limit = hard_limit + 1",
    ),
    (
        "quota_period",
        "a period that overlaps another",
        "billing",
        "INSERT INTO commercial_entitlement_periods (period_id, subscription_id, tenant_id, entitlement_id, starts_at,"
        " ends_at, hard_limit) OVERRIDING SYSTEM VALUE SELECT 9999 + period_id, subscription_id, tenant_id,"
        " entitlement_id, ends_at - interval '1 day', ends_at + interval '1 day', hard_limit"
        " FROM commercial_entitlement_periods",
    ),
    (
        "quota_counter",
        "a counter that forgot something",
        "billing",
        "UPDATE commercial_entitlement_periods SET taken_quantity = taken_quantity - 1",
    ),
    (
        "quota_usage",
        "usage that is gone",
        "billing",
        "DELETE FROM usage_meter_events",
    ),
    (
        "quota_usage",
        "usage of another quantity",
        "billing",
        "UPDATE usage_meter_events SET quantity = quantity + 1",
    ),
    (
        "quota_usage",
        "a reservation of another time than its period's",
        "billing",
        "UPDATE commercial_runtime_reservations SET as_of = as_of - interval '1 year' WHERE state = 'reserved'",
    ),
    (
        "quota_cost",
        "a cost that is gone",
        "billing",
        "DELETE FROM commercial_cost_events",
    ),
    (
        "quota_cost",
        "a cost at another price",
        "billing",
        "UPDATE commercial_cost_events SET unit_cost_picos = 1, amount_picos = quantity",
    ),
    (
        "quota_marker",
        "a usage whose work did not commit",
        "attachments",
        "UPDATE commercial_markers SET verdict = 'refused' WHERE verdict = 'committed' AND kind = 'reservation'",
    ),
    (
        "quota_marker",
        "a release without a refusal",
        "attachments",
        "DELETE FROM commercial_markers WHERE verdict = 'refused'",
    ),
    (
        "marker_reservation",
        "a commit of which billing knows nothing",
        "attachments",
        "INSERT INTO commercial_markers (subject_id, generation, kind, verdict)"
        " VALUES ('00000000-0000-7000-8000-000000000001', 1, 'reservation', 'committed')",
    ),
]

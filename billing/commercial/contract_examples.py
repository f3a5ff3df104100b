"""One fixed example of each contract of the commercial model."""

from billing.commercial.contracts import CommercialPlan, MeterCost, PlanEntitlement, PlanMeter
from outbox.contracts.contract import Contract

EXAMPLES: dict[str, Contract] = {
    "CommercialPlan": CommercialPlan.issue(
        ref="commercial-plan:team:1",
        name="team",
        plan_version=1,
        entitlements=(
            PlanEntitlement(name="connector-events", quantity_basis="events", hard_limit=10_000),
            PlanEntitlement(name="uploads", quantity_basis="bytes", hard_limit=50 * 10**9),
        ),
        meters=(
            PlanMeter(
                tool="connector",
                dimension="financial.ingest",
                quantity_basis="events",
                entitlement="connector-events",
            ),
            PlanMeter(
                tool="storage",
                dimension="attachment.upload",
                quantity_basis="bytes",
                entitlement="uploads",
                cost=MeterCost(
                    price_book="provider-costs", currency="USD", charge_dimension_key="storage.written_bytes"
                ),
            ),
        ),
    ),
}

"""One fixed example of each contract of consumption."""

from metering.consumption.contracts import (
    ChargeAnswers,
    ChargeConflicting,
    ChargePosted,
    ChargeRefused,
    ChargeSuperseded,
    TelemetryCharge,
    TelemetryCharges,
    UsedQuantity,
)
from outbox.contracts.contract import Contract
from outbox.contracts.examples import reference

CHARGE = TelemetryCharge.of(
    event_kind="llm_billing",
    cluster_id="7",
    window_start="2026-09-24T10:00:00.000000Z",
    window_end="2026-09-24T11:00:00.000000Z",
    organization_id="org:acme",
    applies_to="small-1",
    generation=2,
    quantities=(
        UsedQuantity(charge_dimension_key="llm.cached_input_tokens", quantity="1200"),
        UsedQuantity(charge_dimension_key="llm.input_tokens", quantity="4808"),
        UsedQuantity(charge_dimension_key="llm.output_tokens", quantity="310"),
    ),
)
NOTHING_AFTER_ALL = TelemetryCharge.of(
    event_kind="resource_utilization",
    cluster_id="7",
    window_start="2026-09-24T10:00:00.000000Z",
    window_end="2026-09-24T11:00:00.000000Z",
    organization_id="org:acme",
    applies_to="cpu",
    generation=3,
    quantities=(),
)

EXAMPLES: dict[str, Contract] = {
    "TelemetryCharge": CHARGE,
    "TelemetryCharge.nothing_after_all": NOTHING_AFTER_ALL,
    "TelemetryCharges": TelemetryCharges(charges=(CHARGE, NOTHING_AFTER_ALL)),
    "ChargeAnswers": ChargeAnswers(
        answers=(
            ChargePosted(
                charge_id=CHARGE.charge_id,
                generation=2,
                billing_account_id="account:acme",
                price_book=reference("price-book"),
                currency="USD",
                amount_picos="907200000",
            ),
            ChargeRefused(charge_id=CHARGE.charge_id, generation=2, reason="unknown_price", detail="llm.output_tokens"),
            ChargeRefused(charge_id=CHARGE.charge_id, generation=2, reason="insufficient_funds"),
            ChargeSuperseded(charge_id=CHARGE.charge_id, generation=2, latest_generation=5),
            ChargeConflicting(charge_id=CHARGE.charge_id, generation=2, latest_generation=2),
        )
    ),
}

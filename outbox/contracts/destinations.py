"""The four canonical destinations: exact literals, each with its one consumer and its one receipt contract (O20)."""

from dataclasses import dataclass
from typing import Literal, get_args

Destination = Literal[
    "core_operations", "metering_input_processor", "billing_finalization_coordinator", "billing_settlement_catch_up"
]
ConsumerName = Literal[
    "operations_projector",
    "metering_input_processor_consumer",
    "billing_finalization_coordinator_consumer",
    "billing_settlement_catch_up_consumer",
]
ReceiptType = Literal[
    "OperationsProjectionAppliedReceipt",
    "MeteringInputProcessorConsumerReceipt",
    "BillingFinalizationCoordinatorConsumerReceipt",
    "BillingSettlementCatchUpConsumerReceipt",
]


@dataclass(frozen=True, slots=True)
class DestinationRule:
    """What a member that names this destination must say."""

    destination: Destination
    consumer_name: ConsumerName
    receipt_type: ReceiptType
    receipt_schema_version: str
    ack_kind: str
    needs_projection: bool


RULES: dict[str, DestinationRule] = {
    rule.destination: rule
    for rule in (
        DestinationRule(
            "core_operations",
            "operations_projector",
            "OperationsProjectionAppliedReceipt",
            "1",
            "operations_projection",
            True,
        ),
        DestinationRule(
            "metering_input_processor",
            "metering_input_processor_consumer",
            "MeteringInputProcessorConsumerReceipt",
            "1",
            "metering_input_processor",
            False,
        ),
        DestinationRule(
            "billing_finalization_coordinator",
            "billing_finalization_coordinator_consumer",
            "BillingFinalizationCoordinatorConsumerReceipt",
            "1",
            "billing_finalization_coordinator",
            False,
        ),
        DestinationRule(
            "billing_settlement_catch_up",
            "billing_settlement_catch_up_consumer",
            "BillingSettlementCatchUpConsumerReceipt",
            "1",
            "billing_settlement_catch_up",
            False,
        ),
    )
}
if set(RULES) != set(get_args(Destination)):
    raise TypeError("Every destination has exactly one rule.")

"""`ActiveConsumerAck@1`: the closed union of the four receipts that can complete a delivery (O20)."""

from typing import Annotated, Literal

from pydantic import Field

from outbox.contracts.contract import ContentReference, Contract, ContractViolation, DigestAlgorithm, Identifier, Sha256
from outbox.contracts.destinations import RULES, ConsumerName, Destination


class OperationsProjectionApplied(Contract):
    kind: Literal["operations_projection"] = "operations_projection"
    operations_projection_applied_receipt: ContentReference

    @property
    def receipt(self) -> ContentReference:
        return self.operations_projection_applied_receipt


class MeteringInputProcessed(Contract):
    kind: Literal["metering_input_processor"] = "metering_input_processor"
    metering_input_processor_consumer_receipt: ContentReference

    @property
    def receipt(self) -> ContentReference:
        return self.metering_input_processor_consumer_receipt


class BillingFinalizationCoordinated(Contract):
    kind: Literal["billing_finalization_coordinator"] = "billing_finalization_coordinator"
    billing_finalization_coordinator_consumer_receipt: ContentReference

    @property
    def receipt(self) -> ContentReference:
        return self.billing_finalization_coordinator_consumer_receipt


class BillingSettlementCaughtUp(Contract):
    kind: Literal["billing_settlement_catch_up"] = "billing_settlement_catch_up"
    billing_settlement_catch_up_consumer_receipt: ContentReference

    @property
    def receipt(self) -> ContentReference:
        return self.billing_settlement_catch_up_consumer_receipt


AppliedReceipt = Annotated[
    OperationsProjectionApplied | MeteringInputProcessed | BillingFinalizationCoordinated | BillingSettlementCaughtUp,
    Field(discriminator="kind"),
]


class ActiveConsumerAck(Contract):
    """One consumer's durable acceptance of one event. Never a free string, never a mere HTTP 2xx."""

    destination: Destination
    consumer_name: ConsumerName
    event_id: Identifier
    event_envelope_digest_algorithm_version: DigestAlgorithm
    event_envelope_sha256: Sha256
    applied_receipt: AppliedReceipt

    def ensure_branch(self) -> None:
        """Refuse an ack whose consumer or receipt branch belongs to another destination. Raises `ContractViolation`."""
        rule = RULES[self.destination]
        if self.consumer_name != rule.consumer_name or self.applied_receipt.kind != rule.ack_kind:
            raise ContractViolation(
                f"Ack for {self.destination}: consumer and receipt branch must be "
                f"{rule.consumer_name} and {rule.ack_kind}."
            )

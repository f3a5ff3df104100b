"""The first release of the delivery set: 13 exact event pairs, 14 mandatory members (O7)."""

from outbox.contracts.delivery_set import (
    DeliverySetDefinition,
    DeliverySetMember,
    NoProjection,
    RequiredProjection,
)
from outbox.contracts.destinations import RULES

FIRST_RELEASE_VERSION = "2026.1"
PROJECTION_NAME = "operations"
PROJECTION_VERSION = "1"

ROUTES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("run.created@2.0", ("core_operations",)),
    ("wallet.reserved@2.0", ("core_operations",)),
    ("billing.finalization.committed@1", ("core_operations",)),
    ("billing.settlement-transition.committed@1", ("core_operations",)),
    ("billing.late-settlement-exposure.case-requested@1", ("core_operations",)),
    ("billing.case-resolution.applied@1", ("core_operations",)),
    ("billing.late-settlement-command-result.committed@1", ("core_operations",)),
    ("execution.attempt-eligibility.finalized@1", ("metering_input_processor",)),
    ("execution.run-finalization.closed@1", ("billing_finalization_coordinator",)),
    ("billing.finalization-reconciliation.case-requested@1", ("core_operations",)),
    (
        "billing.finalization-reconciliation-resolution.applied@1",
        ("billing_finalization_coordinator", "core_operations"),
    ),
    ("gateway.evidence-availability.current-changed@1", ("metering_input_processor",)),
    ("metering.settlement-input.current-changed@1", ("billing_settlement_catch_up",)),
)


def member(event_type: str, destination: str) -> DeliverySetMember:
    """The mandatory member that the destination's rule prescribes for this event."""
    rule = RULES[destination]
    return DeliverySetMember(
        event_type=event_type,
        event_schema_version=event_type.partition("@")[2],
        destination=rule.destination,
        consumer_name=rule.consumer_name,
        expected_receipt_type=rule.receipt_type,
        expected_receipt_schema_version=rule.receipt_schema_version,
        projection_target=RequiredProjection(projection_name=PROJECTION_NAME, projection_version=PROJECTION_VERSION)
        if rule.needs_projection
        else NoProjection(),
        mandatory=True,
    )


def first_release() -> DeliverySetDefinition:
    """The definition that every producer registers and activates first."""
    return DeliverySetDefinition.define(
        version=FIRST_RELEASE_VERSION,
        members=(member(event_type, destination) for event_type, to in ROUTES for destination in to),
    )

"""Delivery-set definitions: every rule of O6 refuses what breaks it, and the first release is exactly that of O7."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785

from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import ContractViolation
from outbox.contracts.delivery_set import DefinitionRefused, DeliverySetDefinition
from outbox.contracts.destinations import RULES
from outbox.contracts.first_release import FIRST_RELEASE_VERSION, first_release, member

Document = dict[str, Any]
REQUIRED = {"state": "required", "projectionName": "operations", "projectionVersion": "1"}
NOT_APPLICABLE = {"state": "not_applicable"}


def resealed(change: Callable[[Document], None]) -> bytes:
    """The first release, changed, with a digest that matches the change: only the broken rule can refuse it."""
    document = first_release().wire()
    document = json.loads(json.dumps(document))
    change(document)
    del document["deliverySetDefinitionDigest"]
    return rfc8785.dumps(document | {"deliverySetDefinitionDigest": sha256_hex(rfc8785.dumps(document))})


def index_of(document: Document, destination: str) -> int:
    return next(i for i, item in enumerate(document["members"]) if item["destination"] == destination)


def set_member(where: str, /, **fields: Any) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document["members"][index_of(document, where)] |= fields

    return change


def swap(name: str) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        items = document[name]
        items[0], items[1] = items[1], items[0]

    return change


def twice(name: str, count: str, *, counted: bool = True) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        document[name].insert(1, dict(document[name][0]))
        document[count] += counted

    return change


def orphan(document: Document) -> None:
    del document["applicableEvents"][0]
    document["applicableEventCount"] -= 1


def rebind(document: Document) -> None:
    # Two consumers for one destination of one event; sorted, counted and digested like a valid definition.
    place = index_of(document, "metering_input_processor")
    other = dict(document["members"][place]) | {"consumerName": "operations_projector"}
    document["members"].insert(place + 1, other)
    document["members"].sort(
        key=lambda item: tuple(
            item[name] for name in ("eventType", "eventSchemaVersion", "destination", "consumerName")
        )
    )
    document["memberCount"] += 1


def bare_reference(document: Document) -> None:
    for name in ("deliverySetVersion", "deliverySetDefinitionSchemaVersion"):
        del document[name]


@pytest.mark.spec("O6")
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda d: d.update(applicableEventCount=12), "applicableEventCount"),
        (lambda d: d.update(applicableEventCount=14), "applicableEventCount"),
        (lambda d: d.update(memberCount=13), "memberCount"),
        (lambda d: d.update(memberCount=-1), "memberCount"),
        (swap("applicableEvents"), "applicableEvents is not sorted"),
        (swap("members"), "members is not sorted"),
        (twice("applicableEvents", "applicableEventCount"), "applicableEvents holds a pair twice"),
        (twice("members", "memberCount"), "members holds a member twice"),
        (twice("members", "memberCount", counted=False), "memberCount"),
        (orphan, "not in applicableEvents"),
        (rebind, "bound to two consumers"),
        (set_member("core_operations", consumerName="metering_input_processor_consumer"), "consumer must be"),
        (set_member("core_operations", consumerName="anybody"), "consumerName"),
        (set_member("core_operations", destination="warehouse"), "destination"),
        (set_member("core_operations", projectionTarget=NOT_APPLICABLE), "projectionTarget must be required"),
        (set_member("core_operations", projectionTarget={"state": "required"}), "projectionTarget"),
        (set_member("core_operations", projectionTarget=None), "projectionTarget"),
        (set_member("metering_input_processor", projectionTarget=REQUIRED), "projectionTarget must be not_applicable"),
        (
            set_member("metering_input_processor", projectionTarget=NOT_APPLICABLE | {"projectionName": "operations"}),
            "projectionTarget",
        ),
        (
            set_member("core_operations", expectedReceiptType="MeteringInputProcessorConsumerReceipt"),
            "receipt must be OperationsProjectionAppliedReceipt",
        ),
        (
            set_member("billing_settlement_catch_up", expectedReceiptType="OperationsProjectionAppliedReceipt"),
            "receipt must be BillingSettlementCatchUpConsumerReceipt",
        ),
        (set_member("core_operations", expectedReceiptSchemaVersion="2"), "receipt schema version must be"),
        (set_member("core_operations", mandatory="yes"), "mandatory"),
        (set_member("core_operations", priority=1), "priority"),
        (lambda d: d.update(status="active"), "status"),
        (lambda d: d.update(activatedAt="2026-09-24T10:15:30.000001Z"), "activatedAt"),
        (lambda d: d.update(sourceRelease="1"), "sourceRelease"),
        (lambda d: d.update(deliverySetDefinitionSchemaVersion="2"), "unknown definition schema version"),
        (lambda d: d.update(deliverySetDefinitionDigestAlgorithmVersion="sha256"), "DigestAlgorithmVersion"),
        (bare_reference, "deliverySetVersion"),
        (lambda d: d["members"][0].update(eventSchemaVersion="9"), ""),
        (lambda d: d.update(members=None), "members"),
        (lambda d: d["applicableEvents"][0].update(eventType="run.created"), "eventType"),
        (lambda d: d["applicableEvents"][0].update(eventType="run.*@2.0"), "eventType"),
    ],
)
def test_a_definition_that_breaks_one_rule_is_refused_naming_it(change: Callable[[Document], None], rule: str) -> None:
    with pytest.raises(DefinitionRefused, match=rule or None):
        DeliverySetDefinition.parse(resealed(change))


@pytest.mark.spec("O6")
@pytest.mark.parametrize("name", [*first_release().wire()])
def test_no_field_may_be_missing(name: str) -> None:
    document = first_release().wire()
    del document[name]
    with pytest.raises(DefinitionRefused):
        DeliverySetDefinition.parse(rfc8785.dumps(document))


@pytest.mark.spec("O6")
def test_the_digest_covers_everything_but_itself() -> None:
    definition = first_release()
    document = json.loads(definition.canonical())
    assert document.pop("deliverySetDefinitionDigest") == sha256_hex(rfc8785.dumps(document))
    assert definition.reference.ref == FIRST_RELEASE_VERSION
    assert definition.reference.digest == definition.recompute_digest()


@pytest.mark.spec("O6")
@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(deliverySetVersion="2026.2"),
        lambda d: d.update(deliverySetDefinitionDigest="0" * 64),
        lambda d: d["members"][0].update(mandatory=False),
        lambda d: d["members"][0]["projectionTarget"].update(projectionVersion="2"),
    ],
)
def test_the_same_version_with_other_content_or_digest_is_refused(change: Callable[[Document], None]) -> None:
    document = json.loads(first_release().canonical())
    change(document)
    with pytest.raises(DefinitionRefused, match="Digest does not match"):
        DeliverySetDefinition.parse(rfc8785.dumps(document))


@pytest.mark.spec("O6")
def test_another_spelling_of_a_valid_definition_is_refused() -> None:
    with pytest.raises(DefinitionRefused):
        DeliverySetDefinition.parse(json.dumps(first_release().wire()).encode())


@pytest.mark.spec("O6")
def test_define_sorts_and_counts_whatever_order_the_members_come_in() -> None:
    members = list(first_release().members)
    assert DeliverySetDefinition.define(version=FIRST_RELEASE_VERSION, members=members[::-1]) == first_release()
    with pytest.raises(DefinitionRefused, match="member twice"):
        DeliverySetDefinition.define(version="x", members=[members[0], members[0]])


@pytest.mark.spec("O6")
def test_a_definition_that_parses_is_the_object_that_was_written() -> None:
    read = DeliverySetDefinition.parse(first_release().canonical())
    assert read == first_release()
    assert read.canonical() == rfc8785.dumps(first_release().wire())


@pytest.mark.spec("O6")
def test_every_destination_has_one_consumer_one_receipt_and_its_own_ack_branch() -> None:
    rules = list(RULES.values())
    for name in ("destination", "consumer_name", "receipt_type", "ack_kind"):
        assert len({getattr(rule, name) for rule in rules}) == 4
    assert [rule.destination for rule in rules if rule.needs_projection] == ["core_operations"]


MANDATORY = {
    ("billing.case-resolution.applied@1", "1", "core_operations"),
    ("billing.finalization-reconciliation-resolution.applied@1", "1", "billing_finalization_coordinator"),
    ("billing.finalization-reconciliation-resolution.applied@1", "1", "core_operations"),
    ("billing.finalization-reconciliation.case-requested@1", "1", "core_operations"),
    ("billing.finalization.committed@1", "1", "core_operations"),
    ("billing.late-settlement-command-result.committed@1", "1", "core_operations"),
    ("billing.late-settlement-exposure.case-requested@1", "1", "core_operations"),
    ("billing.settlement-transition.committed@1", "1", "core_operations"),
    ("execution.attempt-eligibility.finalized@1", "1", "metering_input_processor"),
    ("execution.run-finalization.closed@1", "1", "billing_finalization_coordinator"),
    ("gateway.evidence-availability.current-changed@1", "1", "metering_input_processor"),
    ("metering.settlement-input.current-changed@1", "1", "billing_settlement_catch_up"),
    ("run.created@2.0", "2.0", "core_operations"),
    ("wallet.reserved@2.0", "2.0", "core_operations"),
}


@pytest.mark.spec("O7")
def test_the_first_release_has_exactly_thirteen_pairs_and_fourteen_mandatory_members() -> None:
    definition = first_release()
    assert {(*item.pair, item.destination) for item in definition.members} == MANDATORY
    assert {event.pair for event in definition.applicable_events} == {(kind, version) for kind, version, _ in MANDATORY}
    assert (definition.applicable_event_count, definition.member_count) == (13, 14)
    assert all(item.mandatory for item in definition.members)


@pytest.mark.spec("O7", "O9")
def test_no_alias_prefix_or_neighbouring_version_is_covered() -> None:
    definition = first_release()
    assert definition.covers("run.created@2.0", "2.0")
    assert [m.destination for m in definition.members_of("run.created@2.0", "2.0")] == ["core_operations"]
    for pair in (
        ("run.created@2.0", "2"),
        ("run.created@2", "2"),
        ("run.created", "2.0"),
        ("run.created@2.1", "2.1"),
        ("Run.created@2.0", "2.0"),
        ("run.created@1", "1"),
    ):
        assert not definition.covers(*pair)
        assert definition.members_of(*pair) == ()


@pytest.mark.spec("O6")
def test_a_member_whose_version_is_not_that_of_its_event_type_is_refused() -> None:
    odd = member("run.created@2.0", "core_operations").model_copy(update={"event_schema_version": "2.1"})
    with pytest.raises(ContractViolation, match="not the version in the event type"):
        DeliverySetDefinition.define(version="x", members=[odd])

"""The ack is a closed union: each destination has its one consumer and its one receipt branch."""

import itertools
import json
from typing import Any

import pytest
import rfc8785

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.contract import ContractViolation
from outbox.contracts.destinations import RULES
from outbox.contracts.examples import ACKS
from tests.contracts.test_contract import changed

pytestmark = pytest.mark.spec("O20")


def test_there_is_one_branch_per_destination() -> None:
    assert [ack.destination for ack in ACKS] == list(RULES)
    for ack in ACKS:
        ack.ensure_branch()
        assert ack.applied_receipt.kind == RULES[ack.destination].ack_kind


@pytest.mark.parametrize("ack", ACKS, ids=lambda ack: ack.destination)
def test_each_branch_carries_one_flat_receipt_reference_and_comes_back_as_its_own_type(ack: ActiveConsumerAck) -> None:
    branch = json.loads(ack.canonical())["appliedReceipt"]
    assert len(branch) == 5
    assert {name.removesuffix("Ref") for name in branch if name.endswith("ReceiptRef")} == {
        name.removesuffix("Digest") for name in branch if name.endswith("ReceiptDigest")
    }
    read = ActiveConsumerAck.parse(ack.canonical())
    assert type(read.applied_receipt) is type(ack.applied_receipt)
    assert read.applied_receipt.receipt == ack.applied_receipt.receipt
    assert read == ack


@pytest.mark.parametrize(("ack", "other"), itertools.permutations(ACKS, 2), ids=lambda ack: ack.destination)
def test_another_destinations_consumer_or_receipt_branch_is_refused(
    ack: ActiveConsumerAck, other: ActiveConsumerAck
) -> None:
    for update in ({"applied_receipt": other.applied_receipt}, {"consumer_name": other.consumer_name}):
        with pytest.raises(ContractViolation, match=ack.destination):
            ack.model_copy(update=update).ensure_branch()


@pytest.mark.parametrize(
    "fields",
    [
        {"appliedReceipt": "ok"},
        {"appliedReceipt": {"kind": "http_200"}},
        {"appliedReceipt": {}},
        {"appliedReceipt": None},
        {"appliedReceipt": ...},
        {"destination": "everywhere"},
        {"eventEnvelopeSha256": ...},
        {"eventEnvelopeDigestAlgorithmVersion": "sha256"},
        {"status": 200},
    ],
)
def test_a_free_answer_is_no_ack(fields: dict[str, Any]) -> None:
    with pytest.raises(ContractViolation):
        ActiveConsumerAck.parse(changed(ACKS[0].canonical(), **fields))


@pytest.mark.parametrize(("ack", "other"), itertools.permutations(ACKS, 2), ids=lambda ack: ack.destination)
def test_a_branch_under_another_branchs_name_is_refused(ack: ActiveConsumerAck, other: ActiveConsumerAck) -> None:
    document = json.loads(ack.canonical())
    document["appliedReceipt"]["kind"] = other.applied_receipt.kind
    with pytest.raises(ContractViolation):
        ActiveConsumerAck.parse(rfc8785.dumps(document))

"""Accept an acknowledgement, or say what is wrong with it (O20, O21).

Every coordinate of ack and receipt must equal the frozen member and the event, and the receipt's content must recompute
to the digest by which the ack names it. Expected values come from the member, never from the answer.

A receipt that says nothing beyond those coordinates is determined by them but for its reference and its time: it is
written down as expected and compared byte by byte, which proves shape, canonical form, digest and coordinates at once.
Any other receipt, and any difference, goes the long way through its contract, which names the first difference.
"""

import re
from functools import cache

import orjson
from pydantic.alias_generators import to_camel

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.canonical import DIGEST_ALGORITHM, encode_json, sha256_hex
from outbox.contracts.contract import ContentAddressed, ContentReference, ContractViolation
from outbox.contracts.delivery import Acknowledged
from outbox.contracts.destinations import RULES
from outbox.contracts.receipt import UnknownReceipt, receipt_of
from outbox.rows import Claimed

COORDINATES = {
    "destination",
    "consumer_name",
    "event_id",
    "event_type",
    "event_schema_version",
    "event_envelope_digest_algorithm_version",
    "event_envelope_sha256",
    "projection_name",
    "projection_version",
}
TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")


class AckRejected(ContractViolation):
    """The answer does not prove what the frozen member demands. The delivery is tried again, with an alarm."""


def accept(claimed: Claimed, verdict: Acknowledged) -> ContentReference:
    """The receipt's four-tuple, proven against the frozen member. Raises `AckRejected` naming the first difference."""
    return _as_expected(claimed, verdict) or _proven(claimed, verdict)


@cache
def _time_of(contract: type[ContentAddressed]) -> tuple[str, str] | None:
    """(own field, time field) on the wire if coordinates determine all else that the receipt says, otherwise None."""
    own = contract.own_field
    names = set(contract.__pydantic_fields__) - {f"{own}_{part}" for part in ContentReference._fields}
    free = names - COORDINATES
    if len(free) != 1 or not free <= {name for name in names if to_camel(name) in contract.excluded_fields}:
        return None
    return to_camel(own), to_camel(free.pop())


def _as_expected(claimed: Claimed, verdict: Acknowledged) -> ContentReference | None:
    member, ack = claimed.member, verdict.ack
    try:
        contract = receipt_of(member.expected_receipt_type, member.expected_receipt_schema_version)
        time_of = _time_of(contract)
        said = orjson.loads(verdict.receipt) if time_of else None
    except (UnknownReceipt, ValueError):
        return None
    if time_of is None or type(said) is not dict:
        return None
    own, time_field = time_of
    applied_at = said.get(time_field)
    if type(applied_at) is not str or not TIMESTAMP.fullmatch(applied_at):
        return None
    expected = {
        "destination": member.destination,
        "consumerName": member.consumer_name,
        "eventId": claimed.event_id,
        "eventType": member.event_type,
        "eventSchemaVersion": member.event_schema_version,
        "eventEnvelopeDigestAlgorithmVersion": claimed.digest_algorithm_version,
        "eventEnvelopeSha256": claimed.envelope_sha256,
        "projectionName": member.projection_name,
        "projectionVersion": member.projection_version,
        f"{own}SchemaVersion": member.expected_receipt_schema_version,
        f"{own}DigestAlgorithmVersion": DIGEST_ALGORITHM,
    }
    digest, ref = sha256_hex(encode_json(expected)), said.get(f"{own}Ref")
    expected |= {f"{own}Ref": ref, f"{own}Digest": digest, time_field: applied_at}
    named = ack.applied_receipt.__dict__
    field = contract.own_field
    same = (
        encode_json(expected) == verdict.receipt
        and ack.destination == member.destination
        and ack.consumer_name == member.consumer_name
        and ack.event_id == claimed.event_id
        and ack.event_envelope_sha256 == claimed.envelope_sha256
        and ack.event_envelope_digest_algorithm_version == claimed.digest_algorithm_version
        and named["kind"] == RULES[member.destination].ack_kind
        and named.get(f"{field}_ref") == ref
        and named.get(f"{field}_digest") == digest
        and named.get(f"{field}_schema_version") == member.expected_receipt_schema_version
        and named.get(f"{field}_digest_algorithm_version") == DIGEST_ALGORITHM
    )
    return ack.applied_receipt.receipt if same else None


def _proven(claimed: Claimed, verdict: Acknowledged) -> ContentReference:
    member, ack = claimed.member, verdict.ack
    rule = RULES[member.destination]
    _same("ack destination", ack.destination, member.destination)
    _same("ack consumer", ack.consumer_name, member.consumer_name)
    _same("ack receipt branch", ack.applied_receipt.kind, rule.ack_kind)
    _envelope_matches("ack", claimed, ack)
    try:
        contract = receipt_of(member.expected_receipt_type, member.expected_receipt_schema_version)
        receipt = contract.parse(verdict.receipt)
    except (UnknownReceipt, ContractViolation) as error:
        raise AckRejected(f"The receipt cannot be proven: {error}") from error
    named, own = ack.applied_receipt.receipt, receipt.reference
    _same("receipt schema version", own.schema_version, member.expected_receipt_schema_version)
    if named != own:
        raise AckRejected("The ack names another receipt than the one that came with it.")
    _same("receipt destination", getattr(receipt, "destination", None), member.destination)
    _same("receipt consumer", getattr(receipt, "consumer_name", None), member.consumer_name)
    _envelope_matches("receipt", claimed, receipt)
    _same("receipt event type", getattr(receipt, "event_type", member.event_type), member.event_type)
    _same(
        "receipt event schema version",
        getattr(receipt, "event_schema_version", member.event_schema_version),
        member.event_schema_version,
    )
    _same("receipt projection name", getattr(receipt, "projection_name", None), member.projection_name)
    _same("receipt projection version", getattr(receipt, "projection_version", None), member.projection_version)
    return own


def _envelope_matches(what: str, claimed: Claimed, answer: "ActiveConsumerAck | object") -> None:
    _same(f"{what} event", getattr(answer, "event_id", None), claimed.event_id)
    _same(f"{what} envelope digest", getattr(answer, "event_envelope_sha256", None), claimed.envelope_sha256)
    _same(
        f"{what} digest algorithm",
        getattr(answer, "event_envelope_digest_algorithm_version", None),
        claimed.digest_algorithm_version,
    )


def _same(what: str, answered: object, expected: object) -> None:
    if answered != expected:
        raise AckRejected(f"The {what} is {answered!r}, the frozen member demands {expected!r}.")

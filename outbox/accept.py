"""Accept an acknowledgement, or say what is wrong with it (O20, O21).

Every coordinate of ack and receipt must equal the frozen member and the event, and the receipt's content must recompute
to the digest by which the ack names it. Expected values come from the member, never from the answer.

A receipt that says nothing beyond those coordinates is determined by them but for its reference and its time: it is
written down as expected and compared byte by byte, which proves shape, canonical form, digest and coordinates at once.
Any other receipt, and any difference, goes the long way through its contract, which names the first difference.
"""

import re
from functools import cache
from typing import NamedTuple

from pydantic.alias_generators import to_camel

from outbox.contracts.ack import ActiveConsumerAck
from outbox.contracts.canonical import DIGEST_ALGORITHM, encode_json, sha256_hex
from outbox.contracts.contract import ContentReference, ContractViolation
from outbox.contracts.delivery import Acknowledged, FrozenMember
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
TIMESTAMP = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")
TIME_BYTES = 27


class AckRejected(ContractViolation):
    """The answer does not prove what the frozen member demands. The delivery is tried again, with an alarm."""


def accept(claimed: Claimed, verdict: Acknowledged) -> ContentReference:
    """The receipt's four-tuple, proven against the frozen member. Raises `AckRejected` naming the first difference."""
    return _as_expected(claimed, verdict) or _proven(claimed, verdict)


class Form(NamedTuple):
    """The canonical bytes of a receipt that coordinates determine, with marks where events and receipts differ."""

    own: str
    candidate: bytes
    before_time: bytes
    after_time: bytes

    def expect(self, *, event_id: bytes, sha256: bytes, ref: bytes, digest: bytes, time: bytes) -> bytes:
        """The whole receipt."""
        after = self.after_time.replace(b"@event@", event_id).replace(b"@sha256@", sha256)
        return self.before_time + time + after.replace(b"@ref@", ref).replace(b"@digest@", digest)


@cache
def form_of(member: FrozenMember) -> Form | None:
    """The form of the receipts that answer this member; None where a receipt says more than coordinates and a time."""
    try:
        contract = receipt_of(member.expected_receipt_type, member.expected_receipt_schema_version)
    except UnknownReceipt:
        return None
    own = to_camel(contract.own_field)
    names = set(contract.__pydantic_fields__) - {f"{contract.own_field}_{part}" for part in ContentReference._fields}
    free = [to_camel(name) for name in names - COORDINATES]
    if len(free) != 1 or free[0] not in contract.excluded_fields:
        return None
    candidate = {
        "destination": member.destination,
        "consumerName": member.consumer_name,
        "eventId": "@event@",
        "eventType": member.event_type,
        "eventSchemaVersion": member.event_schema_version,
        "eventEnvelopeDigestAlgorithmVersion": DIGEST_ALGORITHM,
        "eventEnvelopeSha256": "@sha256@",
        "projectionName": member.projection_name,
        "projectionVersion": member.projection_version,
        f"{own}SchemaVersion": member.expected_receipt_schema_version,
        f"{own}DigestAlgorithmVersion": DIGEST_ALGORITHM,
    }
    candidate = {name: value for name, value in candidate.items() if value is not None}
    whole = encode_json(candidate | {f"{own}Ref": "@ref@", f"{own}Digest": "@digest@", free[0]: "@time@"})
    before, _, after = whole.partition(b"@time@")
    if any(before.count(mark) or after.count(mark) != 1 for mark in (b"@event@", b"@sha256@", b"@ref@", b"@digest@")):
        return None
    return Form(contract.own_field, encode_json(candidate), before, after)


def _as_expected(claimed: Claimed, verdict: Acknowledged) -> ContentReference | None:
    member, ack, said = claimed.member, verdict.ack, verdict.receipt
    form = form_of(member)
    if form is None or claimed.digest_algorithm_version != DIGEST_ALGORITHM:
        return None
    named = ack.applied_receipt.__dict__
    ref, start = named.get(f"{form.own}_ref"), len(form.before_time)
    time = said[start : start + TIME_BYTES]
    if ref is None or '"' in ref or "\\" in ref or not TIMESTAMP.fullmatch(time):
        return None
    event_id, sha256 = claimed.event_id.encode(), claimed.envelope_sha256.encode()
    digest = sha256_hex(form.candidate.replace(b"@event@", event_id).replace(b"@sha256@", sha256))
    same = (
        said == form.expect(event_id=event_id, sha256=sha256, ref=ref.encode(), digest=digest.encode(), time=time)
        and named[f"{form.own}_digest"] == digest
        and named[f"{form.own}_schema_version"] == member.expected_receipt_schema_version
        and named[f"{form.own}_digest_algorithm_version"] == DIGEST_ALGORITHM
        and named["kind"] == RULES[member.destination].ack_kind
        and ack.destination == member.destination
        and ack.consumer_name == member.consumer_name
        and ack.event_id == claimed.event_id
        and ack.event_envelope_sha256 == claimed.envelope_sha256
        and ack.event_envelope_digest_algorithm_version == DIGEST_ALGORITHM
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

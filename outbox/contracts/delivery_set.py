"""`DeliverySetDefinition`: which events are delivered where; strict, sorted, counted, content-addressed (O6, O7).

Its digest covers everything but the digest itself: `deliverySetVersion` is inside, the registry's status, activation
time and source release are outside.
"""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from outbox.contracts.canonical import DIGEST_ALGORITHM, encode_trusted, sha256_hex
from outbox.contracts.contract import (
    ContentReference,
    Contract,
    ContractViolation,
    DigestAlgorithm,
    Identifier,
    Sha256,
    Version,
)
from outbox.contracts.destinations import RULES, ConsumerName, Destination, ReceiptType
from outbox.contracts.envelope import EventType

DEFINITION_SCHEMA_VERSION = "1"
MAX_EVENTS = 200
MAX_MEMBERS = 800


class NoProjection(Contract):
    state: Literal["not_applicable"] = "not_applicable"


class RequiredProjection(Contract):
    state: Literal["required"] = "required"
    projection_name: Identifier
    projection_version: Version


ProjectionTarget = Annotated[NoProjection | RequiredProjection, Field(discriminator="state")]


class ApplicableEvent(Contract):
    event_type: EventType
    event_schema_version: Version

    @property
    def pair(self) -> tuple[str, str]:
        return self.event_type, self.event_schema_version


class DeliverySetMember(Contract):
    """One event at one destination: the consumer, the receipt it must answer with, the projection it must reach."""

    event_type: EventType
    event_schema_version: Version
    destination: Destination
    consumer_name: ConsumerName
    expected_receipt_type: ReceiptType
    expected_receipt_schema_version: Version
    projection_target: ProjectionTarget
    mandatory: bool

    @property
    def pair(self) -> tuple[str, str]:
        return self.event_type, self.event_schema_version

    @property
    def sort_key(self) -> tuple[str, str, str, str]:
        return (*self.pair, self.destination, self.consumer_name)


class DefinitionRefused(ContractViolation):
    """The delivery-set definition breaks a rule of O6; the message names it. Permanent: correct the definition."""


class DeliverySetDefinition(Contract):
    """The whole definition. Build one with `define`; take a foreign one through `parse` and `ensure_valid`."""

    excluded_fields: ClassVar[frozenset[str]] = frozenset({"deliverySetDefinitionDigest"})

    delivery_set_version: Version
    delivery_set_definition_schema_version: Version
    delivery_set_definition_digest_algorithm_version: DigestAlgorithm
    delivery_set_definition_digest: Sha256
    applicable_event_count: Annotated[int, Field(ge=0, le=MAX_EVENTS)]
    applicable_events: tuple[ApplicableEvent, ...]
    member_count: Annotated[int, Field(ge=0, le=MAX_MEMBERS)]
    members: tuple[DeliverySetMember, ...]

    @property
    def reference(self) -> ContentReference:
        """The four-tuple that events and deliveries freeze."""
        return ContentReference(
            ref=self.delivery_set_version,
            schema_version=self.delivery_set_definition_schema_version,
            digest_algorithm_version=self.delivery_set_definition_digest_algorithm_version,
            digest=self.delivery_set_definition_digest,
        )

    def candidate(self) -> dict[str, Any]:
        """What the digest covers."""
        return {key: value for key, value in self.wire().items() if key not in self.excluded_fields}

    def recompute_digest(self) -> str:
        """The digest the stored one must equal."""
        return sha256_hex(encode_trusted(self.candidate()))

    @classmethod
    def define(cls, *, version: str, members: Iterable[DeliverySetMember]) -> Self:
        """A valid definition of these members, sorted and counted. Raises `DefinitionRefused`."""
        ordered = tuple(sorted(members, key=lambda member: member.sort_key))
        pairs = sorted({member.pair for member in ordered})
        draft = cls(
            delivery_set_version=version,
            delivery_set_definition_schema_version=DEFINITION_SCHEMA_VERSION,
            delivery_set_definition_digest_algorithm_version=DIGEST_ALGORITHM,
            delivery_set_definition_digest="0" * 64,
            applicable_event_count=len(pairs),
            applicable_events=tuple(ApplicableEvent(event_type=t, event_schema_version=v) for t, v in pairs),
            member_count=len(ordered),
            members=ordered,
        )
        whole = draft.model_copy(update={"delivery_set_definition_digest": draft.recompute_digest()})
        return whole.ensure_valid()

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The valid definition in canonical bytes. Raises `DefinitionRefused`."""
        try:
            return super().parse(data).ensure_valid()
        except DefinitionRefused:
            raise
        except ContractViolation as error:
            raise DefinitionRefused(str(error)) from error

    def members_of(self, event_type: str, schema_version: str) -> tuple[DeliverySetMember, ...]:
        """The members of one exact pair, sorted by destination."""
        return tuple(member for member in self.members if member.pair == (event_type, schema_version))

    def covers(self, event_type: str, schema_version: str) -> bool:
        """True if the pair is applicable."""
        return any(event.pair == (event_type, schema_version) for event in self.applicable_events)

    def ensure_valid(self) -> Self:
        """The definition itself, proven against every rule of O6. Raises `DefinitionRefused` naming the rule."""
        for broken, rule in self._rules():
            if broken:
                raise DefinitionRefused(f"Delivery set {self.delivery_set_version!r} refused: {rule}.")
        return self

    def _rules(self) -> Iterable[tuple[Any, str]]:
        pairs = [event.pair for event in self.applicable_events]
        keys = [member.sort_key for member in self.members]
        targets = [(member.pair, member.destination) for member in self.members]
        yield (
            self.delivery_set_definition_schema_version != DEFINITION_SCHEMA_VERSION,
            f"unknown definition schema version; this release reads {DEFINITION_SCHEMA_VERSION!r}",
        )
        yield len(pairs) != self.applicable_event_count, "applicableEventCount differs from the number of events"
        yield len(keys) != self.member_count, "memberCount differs from the number of members"
        yield len(set(pairs)) != len(pairs), "applicableEvents holds a pair twice"
        yield pairs != sorted(pairs), "applicableEvents is not sorted by (eventType, eventSchemaVersion)"
        yield len(set(keys)) != len(keys), "members holds a member twice"
        yield (
            keys != sorted(keys),
            "members is not sorted by (eventType, eventSchemaVersion, destination, consumerName)",
        )
        yield len(set(targets)) != len(targets), "one destination of one event is bound to two consumers"
        yield not {member.pair for member in self.members} <= set(pairs), "a member's event is not in applicableEvents"
        for member in self.members:
            rule = RULES[member.destination]
            where = f"{member.event_type} to {member.destination}"
            yield member.consumer_name != rule.consumer_name, f"{where}: the consumer must be {rule.consumer_name}"
            yield member.expected_receipt_type != rule.receipt_type, f"{where}: the receipt must be {rule.receipt_type}"
            yield (
                member.expected_receipt_schema_version != rule.receipt_schema_version,
                f"{where}: the receipt schema version must be {rule.receipt_schema_version!r}",
            )
            yield (
                (member.projection_target.state == "required") is not rule.needs_projection,
                f"{where}: projectionTarget must be {'required' if rule.needs_projection else 'not_applicable'}",
            )
            yield (
                not member.event_type.endswith(f"@{member.event_schema_version}"),
                f"{where}: eventSchemaVersion is not the version in the event type",
            )
        yield (
            self.delivery_set_definition_digest != self.recompute_digest(),
            "deliverySetDefinitionDigest does not match the content",
        )

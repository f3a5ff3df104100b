"""Frozen members, read once per definition: a definition never changes, so what was read stays true."""

from dataclasses import dataclass, field

from outbox.contracts.contract import ContentReference
from outbox.contracts.delivery import FrozenMember
from outbox.models import DeliverySetMember

Key = tuple[str, str, str, str]


@dataclass(slots=True)
class Members:
    """The members registered in one producer's database, by (version, event type, schema version, destination)."""

    using: str
    known: dict[Key, FrozenMember] = field(default_factory=dict)

    def find(self, version: str, event_type: str, schema_version: str, destination: str) -> FrozenMember:
        """The member an event froze. Raises `LookupError` if the registry lacks it, which the guards exclude."""
        key = (version, event_type, schema_version, destination)
        if key not in self.known:
            self._load(version)
        return self.known[key]

    def _load(self, version: str) -> None:
        rows = DeliverySetMember.objects.using(self.using).filter(delivery_set_version=version)
        for row in rows.select_related("delivery_set_version"):
            definition = row.delivery_set_version
            self.known[version, row.event_type, row.schema_version, row.destination] = FrozenMember(
                definition=ContentReference(
                    ref=definition.delivery_set_version,
                    schema_version=definition.delivery_set_definition_schema_version,
                    digest_algorithm_version="jcs-sha256-v1",
                    digest=definition.delivery_set_definition_digest,
                ),
                event_type=row.event_type,
                event_schema_version=row.schema_version,
                destination=row.destination,
                consumer_name=row.consumer_name,
                expected_receipt_type=row.expected_receipt_type,
                expected_receipt_schema_version=row.expected_receipt_schema_version,
                projection_name=row.projection_name,
                projection_version=row.projection_version,
            )

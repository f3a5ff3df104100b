"""One log record to the row it is stored as, or the field for which it is dropped (T5 to T9).

Only TimeUnixNano, then ObservedTimeUnixNano, say when an event occurred; the time of receipt never does. A record
attribute wins over a resource attribute of the same name; that they disagree is counted. An empty string says nothing.
A stored attribute that is given twice says two things, so the record is dropped; attributes that are not stored, and
the scope, are never looked into.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.coerce import READERS, Invalid, Value
from metering.otlp.fields import COLUMNS, PRECEDENCE, Column, Field, Kind, Shape
from metering.otlp.times import EPOCH_MICROS

Row = tuple[Any, ...]
"""Values in the order of `COLUMNS[kind]`, then `occurred_at` in microseconds since 2000, as PostgreSQL stores it."""

STORED: Final = frozenset(
    {Field.EVENT_TYPE.value, *(column.field.value for columns in COLUMNS.values() for column in columns)}
)
_KINDS: Final = {kind.value: kind for kind in Kind}
_ORDER: Final = {wanted: place for place, wanted in enumerate(PRECEDENCE)}
EVENT_TYPE: Final = Column(Field.EVENT_TYPE, Shape.TEXT, required=False)
NANOS_PER_MICRO: Final = 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """What a request is held to. Times are microseconds since 2000, both ends allowed."""

    needs_manager_key: bool
    """Whether the token is a gateway's (T8)."""
    latest: int
    earliest: Mapping[Kind, int]


@dataclass(frozen=True, slots=True)
class Given:
    """What a list of attributes says about stored fields."""

    values: Mapping[str, AnyValue]
    twice: frozenset[str]

    def read(self, column: Column) -> Value:
        """The value of a column, None where nothing is said. Raises `Invalid`."""
        key = column.field.value
        if key in self.twice:
            raise Invalid
        value = self.values.get(key)
        return None if value is None else READERS[column.shape](value)


class Dropped(Exception):
    """The record can not be stored, for this field. Permanent: correct its emitter."""

    def __init__(self, *, kind: Kind | None, reason: Field, event_id: str | None) -> None:
        super().__init__(reason.value)
        self.kind = kind
        self.reason = reason
        self.event_id = event_id


@dataclass(slots=True)
class Disagreements:
    """How often a record attribute differed from the resource's, by field."""

    counts: Counter[Field] = field(default_factory=Counter)


def given(attributes: Iterable[KeyValue]) -> Given:
    """The stored fields among attributes, by key."""
    values: dict[str, AnyValue] = {}
    twice = set()
    for attribute in attributes:
        key = attribute.key
        if key in STORED:
            if key in values:
                twice.add(key)
            values[key] = attribute.value
    return Given(values, frozenset(twice))


def read_record(record: LogRecord, *, resource: Given, rules: Rules, disagreements: Disagreements) -> tuple[Kind, Row]:
    """The kind and the row of a record. Raises `Dropped` for the first field in `PRECEDENCE` that is at fault."""
    own = given(record.attributes)
    kind = _kind(own, resource, disagreements)
    row, faults = [], []
    for column in COLUMNS[kind]:
        try:
            value = _either(column, own, resource, disagreements)
        except Invalid:
            faults.append(column.field)
            value = None
        else:
            required = column.required or (column.field is Field.MANAGER_KEY_ID and rules.needs_manager_key)
            if value is None and required:
                faults.append(column.field)
        row.append(value)
    occurred = occurred_at(record)
    if occurred is None or not rules.earliest[kind] <= occurred <= rules.latest:
        faults.append(Field.OCCURRED_AT)
    if faults:
        event_id = None if row[0] is None else str(row[0])
        raise Dropped(kind=kind, reason=min(faults, key=_ORDER.__getitem__), event_id=event_id)
    return kind, (*row, occurred)


def occurred_at(record: LogRecord) -> int | None:
    """Microseconds since 2000, cut, not rounded; None where the record holds no time."""
    nanos = record.time_unix_nano or record.observed_time_unix_nano
    return nanos // NANOS_PER_MICRO - EPOCH_MICROS if nanos else None


def _kind(own: Given, resource: Given, disagreements: Disagreements) -> Kind:
    try:
        name = _either(EVENT_TYPE, own, resource, disagreements)
    except Invalid:
        name = ""
    kind = Kind.LLM_BILLING if name is None else _KINDS.get(str(name))
    if kind is None:
        raise Dropped(kind=None, reason=Field.EVENT_TYPE, event_id=_event_id(own))
    return kind


def _event_id(own: Given) -> str | None:
    try:
        return str(own.read(COLUMNS[Kind.LLM_BILLING][0]) or "") or None
    except Invalid:
        return None


def _either(column: Column, own: Given, resource: Given, disagreements: Disagreements) -> Value:
    """The record's value, or the resource's where the record says nothing. Raises `Invalid`."""
    value = own.read(column)
    if value is None:
        return resource.read(column)
    if column.field.value in resource.values and _differs(column, value, resource):
        disagreements.counts[column.field] += 1
    return value


def _differs(column: Column, value: Value, resource: Given) -> bool:
    try:
        other = resource.read(column)
    except Invalid:
        return True
    return other is not None and other != value

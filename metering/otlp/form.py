"""The fast way through records that look alike, which is most of them: the same row as `read_record`, or None.

Records of one emitter have the same keys in the same order. For each such list of keys, beside one resource, it is
worked out once where each column's value stands; then a record is read by a few calls that loop in C. Whatever is not
plain (an empty string, a number in another encoding, a value out of bounds, two values that disagree, a missing
field) is None, and `read_record` decides. A property test holds the two together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.fields import COLUMNS, MAX_COUNT, MAX_LEVEL, MAX_TEXT, Column, Field, Kind, Shape
from metering.otlp.read_record import EVENT_TYPE, NANOS_PER_MICRO, STORED, Given, Row, Rules
from metering.otlp.times import EPOCH_MICROS

MAX_FORMS = 64
"""Lists of keys that are worked out for one resource; an emitter with more is no emitter of plain records."""
TEXTS: Final = frozenset({Shape.TEXT, Shape.IDENTIFIER})

_key: Callable[[KeyValue], str] = attrgetter("key")
_string: Callable[[KeyValue], str] = attrgetter("value.string_value")
_int: Callable[[KeyValue], int] = attrgetter("value.int_value")
_double: Callable[[KeyValue], float] = attrgetter("value.double_value")
_bool: Callable[[KeyValue], bool] = attrgetter("value.bool_value")

Attributes = list[KeyValue]
Picked = Callable[[Sequence[Any]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Form:
    """Where the values of one kind stand, in a record's strings followed by `constants`."""

    kind: Kind
    constants: tuple[str | None, ...]
    texts: Picked
    """All text columns, in their order."""
    own: Picked
    """Those of them that the record itself gives; each must say something."""
    overridden: tuple[tuple[int, str], ...]
    """Places whose value the resource gives too, with its value."""
    numbers: Callable[[Attributes], tuple[Any, ...] | None]
    earliest: int


@dataclass(frozen=True, slots=True)
class Layout:
    """One list of keys: where the event type stands (None: nowhere), and the form for each of its values."""

    type_at: int | None
    forms: dict[str, Form | None]


class Forms:
    """The forms of the records beside one resource."""

    def __init__(self, *, resource: Given, rules: Rules) -> None:
        self._resource = resource
        self._rules = rules
        self._latest = rules.latest
        self._layouts: dict[tuple[str, ...], Layout | None] = {}

    def read(self, record: LogRecord) -> tuple[Kind, Row] | None:
        """The kind and row of a plain record, None for any other."""
        attributes = list(record.attributes)
        keys = tuple(map(_key, attributes))
        layout = self._layouts[keys] if keys in self._layouts else self._lay_out(keys)
        if layout is None:
            return None
        strings = list(map(_string, attributes))
        form = layout.forms.get("" if layout.type_at is None else strings[layout.type_at])
        if form is None:
            return None
        values = (*strings, *form.constants)
        numbers = form.numbers(attributes)
        nanos = record.time_unix_nano or record.observed_time_unix_nano
        occurred = nanos // NANOS_PER_MICRO - EPOCH_MICROS
        if (
            numbers is None
            or not nanos
            or not form.earliest <= occurred <= self._latest
            or not _are_plain(form, values)
        ):
            return None
        return form.kind, (*form.texts(values), *numbers, occurred)

    def _lay_out(self, keys: tuple[str, ...]) -> Layout | None:
        if len(self._layouts) >= MAX_FORMS:
            return None
        stored = [key for key in keys if key in STORED]
        layout = None
        if len(stored) == len(set(stored)):
            places = {key: place for place, key in enumerate(keys) if key in STORED}
            layout = self._layout(places, len(keys))
        self._layouts[keys] = layout
        return layout

    def _layout(self, places: dict[str, int], length: int) -> Layout | None:
        try:
            inherited = self._resource.read(EVENT_TYPE)
            type_at = places.get(Field.EVENT_TYPE.value)
            if type_at is None:
                kinds = {"": Kind(str(inherited or Kind.LLM_BILLING.value))}
            else:
                kinds = {kind.value: kind for kind in Kind if inherited in {None, kind.value}}
            return Layout(type_at, {name: self._form(kind, places, length) for name, kind in kinds.items()})
        except ValueError:  # Invalid is one, and so is an unknown kind
            return None

    def _form(self, kind: Kind, places: dict[str, int], length: int) -> Form | None:
        constants: list[str | None] = []
        texts, own, overridden = [], [], []
        for column in (column for column in COLUMNS[kind] if column.shape in TEXTS):
            place = places.get(column.field.value)
            inherited = self._resource.read(column)
            if place is not None:
                own.append(place)
                if inherited is not None:
                    overridden.append((place, str(inherited)))
            else:
                if inherited is None and self._is_required(column):
                    return None
                place = length + len(constants)
                constants.append(None if inherited is None else str(inherited))
            texts.append(place)
        numbers = self._numbers(kind, places)
        if numbers is None or len(own) < 2 or len(texts) < 2:  # noqa: PLR2004  # itemgetter of one item is no tuple
            return None
        return Form(
            kind,
            tuple(constants),
            itemgetter(*texts),
            itemgetter(*own),
            tuple(overridden),
            numbers,
            self._rules.earliest[kind],
        )

    def _is_required(self, column: Column) -> bool:
        return column.required or (column.field is Field.MANAGER_KEY_ID and self._rules.needs_manager_key)

    def _numbers(self, kind: Kind, places: dict[str, int]) -> Callable[[Attributes], tuple[Any, ...] | None] | None:
        columns = [column for column in COLUMNS[kind] if column.shape not in TEXTS]
        if any(column.field.value in self._resource.values for column in columns):
            return None
        found = [places.get(column.field.value) for column in columns]
        if any(place is None and column.required for place, column in zip(found, columns, strict=True)):
            return None
        given = tuple(place for place in found if place is not None)
        return _Counts(given, found) if kind is Kind.LLM_BILLING else _Levels(*given)


def _are_plain(form: Form, values: Sequence[Any]) -> bool:
    own = form.own(values)
    joined = "".join(own)
    if "\x00" in joined or (len(joined) > MAX_TEXT and max(map(len, own)) > MAX_TEXT):
        return False
    return "" not in own and all(values[place] == constant for place, constant in form.overridden)


class _Counts:
    """The counts of an LLM event; the optional one is the last column."""

    def __init__(self, given: tuple[int, ...], found: list[int | None]) -> None:
        self._pick: Picked = itemgetter(*given)
        self._rest = (None,) * (len(found) - len(given))

    def __call__(self, attributes: Attributes) -> tuple[Any, ...] | None:
        picked = self._pick(attributes)
        counts = tuple(map(_int, picked))
        if min(counts) <= 0:
            for count, attribute in zip(counts, picked, strict=True):
                if count < 0 or (count == 0 and attribute.value.WhichOneof("value") != "int_value"):
                    return None
        return None if max(counts) > MAX_COUNT else (*counts, *self._rest)


class _Levels:
    """The level and the flag of a sample."""

    def __init__(self, level_at: int, flag_at: int) -> None:
        self._level_at = level_at
        self._flag_at = flag_at

    def __call__(self, attributes: Attributes) -> tuple[Any, ...] | None:
        level = _double(attributes[self._level_at])
        if not 0 < level <= MAX_LEVEL:
            kind = attributes[self._level_at].value.WhichOneof("value")
            if level != 0 or kind != "double_value":
                return None
        flag = _bool(attributes[self._flag_at])
        if not flag and attributes[self._flag_at].value.WhichOneof("value") != "bool_value":
            return None
        return level + 0.0, flag

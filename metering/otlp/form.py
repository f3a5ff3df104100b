"""The fast way through records that look alike, which is most of them: the same row as `read_record`, or None.

Records of one emitter have the same keys in the same order. For each such list of keys, beside one resource, it is
worked out once where each column's value stands; then a record costs one look at each key and at each stored value.
Whatever is not plain (an empty string, a number in another encoding, a value out of bounds, two values that disagree,
a missing field) is None, and `read_record` decides. A property test holds the two together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from metering.otlp.fields import COLUMNS, MAX_COUNT, MAX_LEVEL, MAX_TEXT, Column, Field, Kind, Shape
from metering.otlp.read_record import EVENT_TYPE, NANOS_PER_MICRO, STORED, Given, Row, Rules
from metering.otlp.times import EPOCH_MICROS

MAX_FORMS = 64
"""Lists of keys that are worked out for one resource; an emitter with more is no emitter of plain records."""
TEXTS: Final = frozenset({Shape.TEXT, Shape.IDENTIFIER})
TEXT_KEYS: Final = frozenset(
    {column.field.value for columns in COLUMNS.values() for column in columns if column.shape in TEXTS}
)

Attributes = list[KeyValue]
Picked = Callable[[Sequence[Any]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Form:
    """Where the values of one kind stand: texts in the layout's strings followed by `constants`."""

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
    """One list of keys: the attributes whose strings are read, and the form for each event type."""

    places: tuple[int, ...]
    """The event type comes first, if it is there at all."""
    has_type: bool
    forms: dict[str, Form | None]


NO_LAYOUT: Final = Layout((), has_type=False, forms={})


class Forms:
    """The forms of the records beside one resource."""

    def __init__(self, *, resource: Given, rules: Rules) -> None:
        self._resource = resource
        self._rules = rules
        self._latest = rules.latest
        self._layouts: dict[tuple[str, ...], Layout] = {}

    def read(self, record: LogRecord) -> tuple[Kind, Row] | None:
        """The kind and row of a plain record, None for any other."""
        attributes = list(record.attributes)
        keys = tuple([attribute.key for attribute in attributes])
        layout = self._layouts.get(keys) or self._lay_out(keys)
        strings: list[str | None] = [attributes[place].value.string_value for place in layout.places]
        form = layout.forms.get(strings[0] if layout.has_type else "")  # type: ignore[arg-type]  # none is None yet
        nanos = record.time_unix_nano or record.observed_time_unix_nano
        if form is None or not nanos:
            return None
        occurred = nanos // NANOS_PER_MICRO - EPOCH_MICROS
        own = form.own(strings)
        joined = "".join(own)
        if (
            not form.earliest <= occurred <= self._latest
            or "" in own
            or "\x00" in joined
            or (len(joined) > MAX_TEXT and max(map(len, own)) > MAX_TEXT)
            or (form.overridden and any(strings[place] != constant for place, constant in form.overridden))
        ):
            return None
        numbers = form.numbers(attributes)
        if numbers is None:
            return None
        strings.extend(form.constants)
        return form.kind, (*form.texts(strings), *numbers, occurred)

    def _lay_out(self, keys: tuple[str, ...]) -> Layout:
        layout = NO_LAYOUT
        stored = [key for key in keys if key in STORED]
        if len(self._layouts) < MAX_FORMS:
            if len(stored) == len(set(stored)):
                layout = self._layout({key: place for place, key in enumerate(keys) if key in STORED})
            self._layouts[keys] = layout
        return layout

    def _layout(self, places: dict[str, int]) -> Layout:
        event_type = EVENT_TYPE.field.value
        read = [key for key in places if key in TEXT_KEYS]
        try:
            inherited = self._resource.read(EVENT_TYPE)
            if event_type in places:
                read.insert(0, event_type)
                kinds = {kind.value: kind for kind in Kind if inherited in {None, kind.value}}
            else:
                kinds = {"": Kind(str(inherited or Kind.LLM_BILLING.value))}
            order = {key: place for place, key in enumerate(read)}
            forms = {name: self._form(kind, places, order) for name, kind in kinds.items()}
        except ValueError:  # Invalid is one, and so is an unknown kind
            return NO_LAYOUT
        return Layout(tuple(places[key] for key in read), event_type in places, forms)

    def _form(self, kind: Kind, places: dict[str, int], order: dict[str, int]) -> Form | None:
        constants: list[str | None] = []
        texts, own, overridden = [], [], []
        for column in (column for column in COLUMNS[kind] if column.shape in TEXTS):
            place = order.get(column.field.value)
            inherited = self._resource.read(column)
            if place is not None:
                own.append(place)
                if inherited is not None:
                    overridden.append((place, str(inherited)))
            else:
                if inherited is None and self._is_required(column):
                    return None
                place = len(order) + len(constants)
                constants.append(None if inherited is None else str(inherited))
            texts.append(place)
        numbers = self._numbers(kind, places)
        if numbers is None or len(own) < 2:  # noqa: PLR2004  # itemgetter of one item is no tuple
            return None
        return Form(
            kind=kind,
            constants=tuple(constants),
            texts=itemgetter(*texts),
            own=itemgetter(*own),
            overridden=tuple(overridden),
            numbers=numbers,
            earliest=self._rules.earliest[kind],
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


class _Counts:
    """The counts of an LLM event; the optional one is the last column."""

    def __init__(self, given: tuple[int, ...], found: list[int | None]) -> None:
        self._given = given
        self._rest = (None,) * (len(found) - len(given))

    def __call__(self, attributes: Attributes) -> tuple[Any, ...] | None:
        counts = [attributes[place].value.int_value for place in self._given]
        if min(counts) <= 0:
            for count, place in zip(counts, self._given, strict=True):
                if count < 0 or (count == 0 and attributes[place].value.WhichOneof("value") != "int_value"):
                    return None
        return None if max(counts) > MAX_COUNT else (*counts, *self._rest)


class _Levels:
    """The level and the flag of a sample."""

    def __init__(self, level_at: int, flag_at: int) -> None:
        self._level_at = level_at
        self._flag_at = flag_at

    def __call__(self, attributes: Attributes) -> tuple[Any, ...] | None:
        level, flag = attributes[self._level_at].value, attributes[self._flag_at].value
        number = level.double_value
        if not 0 < number <= MAX_LEVEL and (number != 0 or level.WhichOneof("value") != "double_value"):
            return None
        if not flag.bool_value and flag.WhichOneof("value") != "bool_value":
            return None
        return number + 0.0, flag.bool_value

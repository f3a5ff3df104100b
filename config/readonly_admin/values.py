"""What a cell of an operator's page can hold. Frozen, without markup: config/templatetags/cells.py draws them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Choices, Field

PICOS_PER_UNIT = 10**12
"""Money is stored in whole pico-units of its currency."""


@dataclass(frozen=True, slots=True)
class State:
    """One value of a closed enum: `value` decides the colour, `label` is read, `meaning` explains."""

    value: str
    label: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Amount:
    """Money, exactly: whole pico-units of `currency`."""

    picos: int
    currency: str

    @property
    def exact(self) -> str:
        """The amount in units, with every digit that is not zero and at least two decimals."""
        sign = "-" if self.picos < 0 else ""
        units, rest = divmod(abs(self.picos), PICOS_PER_UNIT)
        decimals = f"{rest:012d}".rstrip("0").ljust(2, "0")
        return f"{sign}{units:,}.{decimals}"


@dataclass(frozen=True, slots=True)
class Code:
    """An identifier, shown in fixed width; `short` cuts what only serves to be compared."""

    text: str
    short: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """Two lines of one cell: what it is, and what belongs to it."""

    first: Any
    second: Any


@dataclass(frozen=True, slots=True)
class Link:
    """A value that leads to its own page."""

    value: Any
    url: str


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON text, shown line by line."""

    text: str


@dataclass(frozen=True, slots=True)
class Age:
    """Seconds that something has waited."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Span:
    """From when to when; `end` is empty while it lasts."""

    start: datetime
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a whole: its name, how much, and the class of operator.css that colours it."""

    name: str
    amount: int
    tone: str


@dataclass(frozen=True, slots=True)
class Share:
    """How a whole is divided, in `unit`; what no part takes is free."""

    whole: int
    parts: tuple[Part, ...]
    unit: str

    @property
    def free(self) -> int:
        """What is left of the whole."""
        return self.whole - sum(part.amount for part in self.parts)


@dataclass(frozen=True, slots=True)
class Reference:
    """The four-tuple of a content-addressed object."""

    ref: str
    schema_version: str
    algorithm: str
    digest: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a page: headings, rows of cells, and what to say when there are none."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    empty: str = "None."
    note: str = ""


def state_of(choices: type[Choices], value: str) -> State:
    """The `State` of an enum value; one that the enum does not know is shown as it is."""
    labels: dict[str, str] = dict(choices.choices)
    meaning = labels.get(value, value)
    return State(value, meaning.partition(":")[0], meaning)


def shown(field: "Field[Any, Any] | None", value: Any) -> Any:
    """The cell of a model field's value."""
    if value is None or field is None:
        return value
    if field.choices:
        meaning = str(dict(field.flatchoices).get(value, value))
        return State(str(value), meaning.partition(":")[0], meaning)
    if isinstance(value, Decimal):
        return int(value)
    return value

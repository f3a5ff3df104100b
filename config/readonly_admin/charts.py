"""Geometry of the charts: numbers in, SVG coordinates out; the templates need neither scripts nor inline styles."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

WIDTH = 100.0
LEAST = 0.6
"""Something is never drawn as nothing."""
CHART_WIDTH = 600
CHART_HEIGHT = 160
GAP = 0.18
"""The part of a step that stays empty between two columns."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it stands for, its length before scaling, its text, and where it leads."""

    labels: tuple[str, ...]
    value: float
    text: str
    tone: str
    url: str = ""
    note: str = ""
    seconds: float | None = None
    """Beside the length: an age, on a scale of its own."""
    width: float = 0.0
    age_width: float = 0.0


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars on one linear scale from zero to the longest."""

    bars: tuple[Bar, ...]

    @classmethod
    def of(cls, bars: Iterable[Bar]) -> Self:
        given = tuple(bars)
        longest = max((bar.value for bar in given), default=0) or 1
        eldest = max((bar.seconds or 0 for bar in given), default=0) or 1
        return cls(
            tuple(
                replace(bar, width=_width(bar.value, longest), age_width=_width(bar.seconds or 0, eldest))
                for bar in given
            )
        )


def _width(value: float, longest: float) -> float:
    return round(max(WIDTH * value / longest, LEAST), 2) if value else 0.0


@dataclass(frozen=True, slots=True)
class Column:
    """One rectangle of a stack."""

    x: float
    y: float
    width: float
    height: float
    series: str
    title: str


@dataclass(frozen=True, slots=True)
class Layer:
    """What is stacked: its name, its colour (a class of operator.css), and one count per step, oldest first."""

    name: str
    slot: str
    counts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Series:
    """One layer in the legend."""

    name: str
    slot: str
    total: int


@dataclass(frozen=True, slots=True)
class Stack:
    """Stacked columns over time, newest at the right. `ceiling` is the top of the scale."""

    columns: tuple[Column, ...]
    series: tuple[Series, ...]
    ceiling: float
    middle: float
    total: int
    width: int = CHART_WIDTH
    height: int = CHART_HEIGHT

    @property
    def half(self) -> float:
        return self.height / 2


def stacked(layers: Sequence[Layer], *, times: Sequence[str], per: float = 1.0, least: float = 1.0) -> Stack:
    """The chart of all layers, the first at the bottom; `times` names each step, and the scale counts by `per`.

    `least` is the lowest top that the scale has.
    """
    steps = len(times)
    highest = max((sum(layer.counts[i] for layer in layers) for i in range(steps)), default=0) / per
    ceiling = _round_up(max(highest, least))
    columns = []
    for i, at in enumerate(times):
        top = float(CHART_HEIGHT)
        for layer in layers:
            count = layer.counts[i]
            if not count:
                continue
            height = round(CHART_HEIGHT * count / per / ceiling, 2)
            top = round(top - height, 2)
            x, width = CHART_WIDTH * (i + GAP / 2) / steps, CHART_WIDTH * (1 - GAP) / steps
            columns.append(
                Column(round(x, 2), top, round(width, 2), height, layer.slot, f"{layer.name}: {count:,} {at}")
            )
    series = tuple(Series(layer.name, layer.slot, sum(layer.counts)) for layer in layers)
    return Stack(tuple(columns), series, ceiling, ceiling / 2, sum(one.total for one in series))


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, … so that the scale has readable numbers."""
    size = 0.1
    while size < value:
        for factor in (1, 2, 5):
            if size * factor >= value:
                return size * factor
        size *= 10
    return size

"""Geometry of the charts: numbers in, SVG coordinates out; the templates need neither scripts nor inline styles."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
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
    """One rectangle of the rate chart."""

    x: float
    y: float
    width: float
    height: float
    series: str
    title: str


@dataclass(frozen=True, slots=True)
class Series:
    """One owner in the legend. `slot` picks its colour."""

    name: str
    slot: str
    total: int


@dataclass(frozen=True, slots=True)
class Rates:
    """Stacked columns over time, newest at the right. `ceiling` is the top of the scale in deliveries per second."""

    columns: tuple[Column, ...]
    series: tuple[Series, ...]
    ceiling: float
    middle: float
    total: int
    failed: int
    width: int = CHART_WIDTH
    height: int = CHART_HEIGHT

    @property
    def half(self) -> float:
        return self.height / 2


def rates(owners: Mapping[str, tuple[Sequence[int], Sequence[int]]], *, step: timedelta) -> Rates:
    """The chart of acknowledged deliveries per owner and step, with failures of all owners on top."""
    seconds = step.total_seconds()
    steps = max((len(acknowledged) for acknowledged, _ in owners.values()), default=0)
    failed = [sum(failures[i] for _, failures in owners.values()) for i in range(steps)]
    stacks = {f"slot-{slot}": (name, done) for slot, (name, (done, _)) in enumerate(owners.items())}
    highest = max((sum(done[i] for _, done in stacks.values()) + failed[i] for i in range(steps)), default=0) / seconds
    ceiling = _round_up(highest)
    columns = []
    for i in range(steps):
        top = float(CHART_HEIGHT)
        for slot, name, count in [
            *((s, n, done[i]) for s, (n, done) in stacks.items()),
            ("slot-failed", "failed", failed[i]),
        ]:
            if not count:
                continue
            height = round(CHART_HEIGHT * count / seconds / ceiling, 2)
            top = round(top - height, 2)
            x, width = CHART_WIDTH * (i + GAP / 2) / steps, CHART_WIDTH * (1 - GAP) / steps
            title = f"{name}: {count:,} in {seconds:.0f} s"
            columns.append(Column(round(x, 2), top, round(width, 2), height, slot, title))
    legend = tuple(Series(name, slot, sum(done)) for slot, (name, done) in stacks.items())
    total = sum(one.total for one in legend)
    return Rates(tuple(columns), legend, ceiling, ceiling / 2, total, sum(failed))


def _round_up(value: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, … so that the scale has readable numbers."""
    size = 0.1
    while size < value:
        for factor in (1, 2, 5):
            if size * factor >= value:
                return size * factor
        size *= 10
    return size

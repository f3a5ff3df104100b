"""Draws one cell. Every kind of value has one look everywhere: times in UTC with their age, money with its currency."""

import html
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import singledispatch
from typing import Any
from uuid import UUID

from django import template
from django.template import Context
from django.utils import timezone
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from config.readonly_admin.charts import LEAST, WIDTH, Stack
from config.readonly_admin.values import Age, Amount, Code, Document, Lines, Link, Reference, Share, Span, State

register = template.Library()
NOTHING = mark_safe('<span class="nothing">—</span>')
DIGEST_LENGTH = 64
SHORT = 12

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def duration(seconds: float) -> str:
    """How long, in the two largest units that matter: `3 d 4 h`, `12 min`, `1.2 s`, `40 ms`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 10:  # noqa: PLR2004  (one digit before the point leaves room for one behind it)
        return f"{seconds:.1f} s"
    parts: list[str] = []
    rest = int(seconds)
    for size, unit in UNITS:
        if rest >= size and len(parts) < 2:  # noqa: PLR2004  (two units)
            parts.append(f"{rest // size} {unit}")
            rest %= size
        elif parts:
            break
    return " ".join(parts)


def number(value: float) -> str:
    """A count with its thousands apart."""
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:,.1f}"  # noqa: PLR2004  (three digits are enough)


def scale(value: float) -> str:
    """A number beside the axis of a chart: `0.25`, `50`, `20k`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= 10 * size:
            return f"{value / size:g}{unit}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


@singledispatch
def draw(value: Any, now: datetime) -> str:
    return escape(value)


@draw.register
def _(value: None, now: datetime) -> str:
    return NOTHING


@draw.register
def _(value: str, now: datetime) -> str:
    if len(value) == DIGEST_LENGTH and not value.strip("0123456789abcdef"):
        return format_html('<code class="digest">{}</code>', value)
    return escape(value) if value else NOTHING


@draw.register
def _(value: bool, now: datetime) -> str:
    return "yes" if value else "no"


@draw.register
def _(value: int, now: datetime) -> str:
    return format_html('<span class="number">{}</span>', number(value))


@draw.register
def _(value: UUID, now: datetime) -> str:
    return format_html("<code>{}</code>", value)


@draw.register
def _(value: datetime, now: datetime) -> str:
    at = value.astimezone(UTC)
    seconds = (now - at).total_seconds()
    distance = f"{duration(seconds)} ago" if seconds >= 0 else f"in {duration(-seconds)}"
    return format_html(
        '<time datetime="{}" title="{}">{}<span class="ago">{}</span></time>',
        at.isoformat(),
        f"{at:%Y-%m-%d %H:%M:%S.%f} UTC",
        f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}",
        distance,
    )


@draw.register
def _(value: Age, now: datetime) -> str:
    return format_html('<span class="number">{}</span>', duration(value.seconds))


@draw.register
def _(value: Span, now: datetime) -> str:
    if value.end is None:
        return format_html('<span class="number">{} so far</span>', duration((now - value.start).total_seconds()))
    return format_html('<span class="number">{}</span>', duration((value.end - value.start).total_seconds()))


@draw.register
def _(value: State, now: datetime) -> str:
    return format_html(
        '<span class="state state-{}" title="{}">{}</span>', value.value.replace("_", "-"), value.meaning, value.label
    )


@draw.register
def _(value: Amount, now: datetime) -> str:
    return format_html(
        '<span class="number" title="{} pico-{}">{} <span class="unit">{}</span></span>',
        f"{value.picos:,}",
        value.currency,
        value.exact,
        value.currency,
    )


@draw.register
def _(value: Code, now: datetime) -> str:
    if value.short and len(value.text) > SHORT + 1:
        return format_html('<code title="{}">{}…</code>', value.text, value.text[:SHORT])
    return format_html("<code>{}</code>", value.text)


@draw.register
def _(value: Link, now: datetime) -> str:
    return format_html('<a href="{}">{}</a>', value.url, draw(value.value, now))


@draw.register
def _(value: Lines, now: datetime) -> str:
    return format_html('{}<span class="second">{}</span>', draw(value.first, now), draw(value.second, now))


@draw.register
def _(value: Reference, now: datetime) -> str:
    rows = (
        ("ref", value.ref),
        ("schema version", value.schema_version),
        ("digest algorithm", value.algorithm),
        ("digest", value.digest),
    )
    return format_html(
        '<dl class="reference">{}</dl>', format_html_join("", "<dt>{}</dt><dd><code>{}</code></dd>", rows)
    )


@draw.register
def _(value: Share, now: datetime) -> str:
    drawn, x = [], 0.0
    for part in value.parts:
        width = round(max(WIDTH * part.amount / value.whole, LEAST), 2) if part.amount and value.whole else 0.0
        drawn.append((part.tone, x, width))
        x += width
    said = [f"{part.name} {number(part.amount)}" for part in value.parts]
    said.append(f"free {number(value.free)} of {number(value.whole)} {value.unit}")
    return format_html(
        '<svg class="share" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="10"/>{}</svg><span class="second">{}</span>',
        format_html_join("", '<rect class="{}" x="{}" width="{}" height="10"/>', drawn),
        ", ".join(said),
    )


@draw.register
def _(value: Document, now: datetime) -> str:
    return format_html('<pre class="document">{}</pre>', pretty(value.text))


@draw.register
def _(value: list, now: datetime) -> str:  # type: ignore[type-arg]  # singledispatch wants the bare class
    return format_html_join(mark_safe(" "), "{}", ((draw(item, now),) for item in value))


def pretty(text: str) -> str:
    """A JSON text with one value a line; a text that is none is shown as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


@register.simple_tag(takes_context=True)
def cell(context: Context, value: Any) -> SafeString:
    """`{% cell value %}`: the value as every page draws it."""
    drawn = draw(value, context.get("now") or timezone.now())
    return drawn if isinstance(drawn, SafeString) else mark_safe(escape(drawn))  # noqa: S308  (escaped)


@register.simple_tag
def columns(chart: Stack) -> SafeString:
    """`{% columns chart %}`: its rectangles, drawn at once; a chart of a day has hundreds."""
    drawn = (
        f'<rect class="{html.escape(one.series)}" x="{one.x:g}" y="{one.y:g}" width="{one.width:g}"'
        f' height="{one.height:g}"><title>{html.escape(one.title)}</title></rect>'
        for one in chart.columns
    )
    return mark_safe("".join(drawn))  # noqa: S308  (numbers, and texts that are escaped)


def _filter(function: Callable[[float], str]) -> None:
    register.filter(function.__name__, function)


_filter(duration)
_filter(number)
_filter(scale)

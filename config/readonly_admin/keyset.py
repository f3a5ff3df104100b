"""Pages by key, never by offset, and counts that stop counting: both cost the same on ten rows and on ten million.

The order of a list is a unique key that an index holds, all of it in one direction. A page names the key of its first
or last row; rows that arrive meanwhile move nothing.
"""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import BadRequest, EmptyResultSet, ValidationError
from django.db import connections
from django.db.models import F, Field, Model, Q, QuerySet
from django.db.models.fields.tuple_lookups import (  # type: ignore[import-untyped]  # the stubs lack it
    Tuple,
    TupleGreaterThan,
    TupleLessThan,
)

COUNT_CAP = 10_000
"""Rows that a list counts; beyond it the planner's estimate is shown."""


ESTIMATE = """
SELECT sum(greatest(reltuples, 0))::bigint FROM pg_class
 WHERE relkind <> 'p'
   AND oid = ANY (to_regclass(%s)::oid || ARRAY(SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass(%s)))
"""
"""The planner's idea of a table with all its partitions."""


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in list order, and the cursors of the pages beside it (None where there is none)."""

    rows: list[Any]
    previous: str | None
    next: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows: exact up to `COUNT_CAP`, else `capped`, with an estimate where the whole table is meant."""

    number: int
    capped: bool = False
    estimate: int | None = None


def page(queryset: QuerySet[Any], *, order: Sequence[str], cursor: str, size: int) -> Page:
    """The page at `cursor` (empty: the first one). Raises `BadRequest` for a cursor that is none."""
    names = [name.removeprefix("-") for name in order]
    descending = order[0].startswith("-")
    if any(name.startswith("-") is not descending for name in order):
        raise ValueError(f"{order}: a keyset order has one direction, so that one index serves it.")
    fields = [queryset.model._meta.get_field(name) for name in names]
    backwards = cursor.startswith("b")
    rows = queryset
    if cursor:
        rows = rows.filter(_beyond(names, _parse(cursor, fields), less=descending is not backwards))
    flipped = [name if descending else f"-{name}" for name in names]
    found = list(rows.order_by(*(flipped if backwards else order))[: size + 1])
    more, found = len(found) > size, found[:size]
    if backwards:
        found.reverse()
    first, last = (_cursor("b", names, found[0]), _cursor("a", names, found[-1])) if found else (None, None)
    return Page(
        rows=found,
        previous=first if (more if backwards else bool(cursor)) else None,
        next=last if (more or backwards) else None,
    )


def count(queryset: QuerySet[Any], *, whole_table: bool) -> Count:
    """Count up to `COUNT_CAP` rows in one statement; for a whole table, read the planner's estimate with it."""
    limited = queryset.order_by().values(queryset.model._meta.pk_fields[0].name)[: COUNT_CAP + 1]
    try:
        statement, parameters = limited.query.sql_with_params()
    except EmptyResultSet:
        return Count(0)
    with connections[queryset.db].cursor() as cursor:
        cursor.execute(
            f"SELECT (SELECT count(*) FROM ({statement}) counted), ({ESTIMATE})",
            [*parameters, *[queryset.model._meta.db_table] * 2],
        )
        number, estimate = cursor.fetchone()
    if number <= COUNT_CAP:
        return Count(number)
    return Count(COUNT_CAP, capped=True, estimate=max(estimate, COUNT_CAP) if whole_table else None)


def _beyond(names: Sequence[str], key: Sequence[Any], *, less: bool) -> Any:
    if len(names) == 1:
        return Q(**{f"{names[0]}__{'lt' if less else 'gt'}": key[0]})
    return (TupleLessThan if less else TupleGreaterThan)(Tuple(*(F(name) for name in names)), tuple(key))


def _cursor(direction: str, names: Sequence[str], row: Model) -> str:
    values = [getattr(row, name) for name in names]
    text = json.dumps([value.isoformat() if hasattr(value, "isoformat") else str(value) for value in values])
    return direction + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _parse(cursor: str, fields: Sequence["Field[Any, Any]"]) -> list[Any]:
    try:
        text = cursor[1:]
        values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        strings = [value for value in values if isinstance(value, str) and "\x00" not in value]
        key = [field.to_python(value) for field, value in zip(fields, strings, strict=True)]
    except (ValueError, TypeError, ValidationError):
        key = []
    if cursor[0] not in "ab" or not key or None in key:
        raise BadRequest("This page address is not one that a list of the admin made. Start from the list.")
    return key

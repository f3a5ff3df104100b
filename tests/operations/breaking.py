"""Statements that try to break a wall of the projection's tables, and what the database answers."""

from typing import Any

from django.db import DatabaseError, connections, transaction

from operations.projector.models.receipt import CANDIDATE
from tests.operations.facts import PROJECTOR, fact, fact_delivery
from tests.operations.make import acknowledged, admission, changed, delivery, rows

REDIGESTED = {"receipt_digest": f"encode(sha256(convert_to({CANDIDATE}, 'UTF8')), 'hex')"}
"""Makes a forged receipt consistent with itself."""


def fill_every_table() -> None:
    """At least one row everywhere: applied, linked, pending, waiting and foreign events."""
    pair, early = admission(), admission()
    acknowledged(PROJECTOR.consume([delivery(early.wallet), *pair.requests, delivery(admission().run)]))
    foreign = fact(aggregate_id="testing:1", revision=1)
    acknowledged(PROJECTOR.consume([fact_delivery(foreign)]))
    PROJECTOR.consume([fact_delivery(fact(aggregate_id="testing:1", revision=4))])
    wrong = changed(pair.wallet, event_id=admission().run.event_id, aggregate_revision=2)
    acknowledged(PROJECTOR.consume([delivery(wrong)]))


def copy_row(table: str, *, where: str = "true", then: dict[str, str] | None = None, **columns: str) -> str:
    """An INSERT of one existing row with some columns replaced by SQL, and after that those of `then`."""
    names = [
        name
        for (name,) in rows(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_identity = 'NO'"
            " ORDER BY ordinal_position",
            table,
        )
    ]
    inner = ", ".join(f"{columns[name]} AS {name}" if name in columns else name for name in names)
    outer = ", ".join(f"{(then or {}).get(name, name)} AS {name}" for name in names)
    return (
        f"INSERT INTO {table} ({', '.join(names)})"
        f" SELECT {outer} FROM (SELECT {inner} FROM {table} WHERE {where} LIMIT 1) forged"
    )


def refusal(statement: str, *, alias: str, before: tuple[str, ...] = ()) -> tuple[str, str | None]:
    """(SQLSTATE, constraint or guard) with which the database refuses; fails if it does not.

    Whatever it would have done is rolled back.
    """
    try:
        with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
            for preparation in before:
                cursor.execute(preparation)
            cursor.execute(statement)
            transaction.set_rollback(True, using=alias)
    except DatabaseError as error:
        cause: Any = error.__cause__
        return cause.sqlstate, cause.diag.constraint_name
    raise AssertionError(f"The database accepted as {alias}: {statement}")

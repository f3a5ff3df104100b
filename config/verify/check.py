"""What a check is, what it finds, and the snapshots that it looks at.

Every check reads each database through one repeatable-read, read-only snapshot, so commits in between neither hide nor
invent a violation. A check that compares two databases opens their snapshots in the order in which the facts are
committed backwards: what it reads first must already imply what it looks for second. So work in flight is never
reported, and a check may run beside a busy system.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from django.db import connections
from psycopg import sql

MAX_SAMPLES = 10
"""Violations named per check; the others are counted."""
BATCH_ROWS = 2_000
"""Rows that a streaming check holds at once; bounds its memory whatever the size of the table."""
STATEMENT_SECONDS = 1_800
"""One statement may look at a whole table; the timeout of the read role is made for pages."""

Row = tuple[Any, ...]
Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: in which owner's database, about what, and how."""

    database: str
    subject: str
    problem: str


@dataclass(slots=True)
class Tally:
    """What one check came to."""

    examined: int = 0
    violations: int = 0
    samples: list[Violation] = field(default_factory=list)

    def found(self, database: str, subject: object, problem: str, *, count: int = 1) -> None:
        """Count `count` violations and keep this one as a sample while there is room."""
        self.violations += count
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(Violation(database, str(subject), problem))


@dataclass(frozen=True, slots=True)
class Check:
    """One invariant. `promise` is what holds as long as it finds nothing."""

    id: str
    promise: str
    run: Callable[[], Tally]


class Snapshot:
    """One database at one moment."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def one(self, statement: str, parameters: Parameters = None) -> Row:
        """The only row of a statement."""
        row = self._connection.execute(statement, parameters).fetchone()
        if row is None:
            raise LookupError(f"no row: {statement}")
        return row

    def rows(self, statement: str, parameters: Parameters = None) -> list[Row]:
        """All rows of a statement that bounds them itself."""
        return self._connection.execute(statement, parameters).fetchall()

    def stream(self, statement: str, parameters: Parameters = None) -> Iterator[list[Row]]:
        """The rows of a statement in batches of at most `BATCH_ROWS`, through a cursor of the server."""
        with self._connection.cursor(name="verify") as cursor:
            cursor.execute(statement, parameters)
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield batch


@contextmanager
def snapshots(*aliases: str) -> Iterator[list[Snapshot]]:
    """Snapshots of these databases, taken one after the other in this order; one alias named twice is one snapshot."""
    with ExitStack() as stack:
        opened: dict[str, Snapshot] = {}
        for alias in aliases:
            if alias not in opened:
                opened[alias] = stack.enter_context(_snapshot(alias))
        yield [opened[alias] for alias in aliases]


@contextmanager
def _snapshot(alias: str) -> Iterator[Snapshot]:
    wrapper = connections[alias]
    wrapper.ensure_connection()
    connection: psycopg.Connection[Row] = wrapper.connection
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(setting), f"{STATEMENT_SECONDS}s"))
        connection.execute("SET LOCAL work_mem = '64MB'")
        # The snapshot is that of the first query, not that of BEGIN.
        connection.execute("SELECT pg_current_snapshot()")
        yield Snapshot(connection)


def by_statement(
    *, owners: Sequence[tuple[str, str]], examined: str, violations: str, parameters: Parameters = None
) -> Callable[[], Tally]:
    """A check that the databases do alone.

    `owners` are pairs of owner name and alias; `examined` answers one number; `violations` answers rows of (subject,
    problem), of which only samples travel.
    """
    sampled = (
        f"SELECT count(*) OVER (), v.subject, v.problem FROM ({violations}) v (subject, problem) LIMIT {MAX_SAMPLES}"
    )

    def run() -> Tally:
        tally = Tally()
        for name, alias in owners:
            with snapshots(alias) as (database,):
                tally.examined += int(database.one(examined)[0])
                rows = database.rows(sampled, parameters)
            for number, (_, subject, problem) in enumerate(rows):
                tally.found(name, subject, problem, count=1 if number else rows[0][0] - len(rows) + 1)
        return tally

    return run

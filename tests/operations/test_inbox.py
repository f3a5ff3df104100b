"""The inbox transaction as a whole: how many statements, what a lost database does, and who may be around it."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from django.db import InterfaceError, OperationalError, connections, transaction

from config.databases import address_of
from config.owners import owner_named
from outbox import steps
from tests.operations.make import acknowledged, admission, apply, delivery, one, state_of_projection

STATEMENTS = 8
"""Of a batch in which everything is new; beside them BEGIN and COMMIT."""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the connections of this process execute from now on."""
    seen: list[str] = []
    execute = psycopg.Cursor.execute

    def recording(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        seen.append(str(query))
        return execute(self, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Cursor, "execute", recording)
    return seen


@pytest.mark.spec("O26")
@pytest.mark.parametrize("pairs", [1, 50])
def test_a_batch_costs_the_same_few_statements_whatever_its_size(
    database: None, statements: list[str], pairs: int
) -> None:
    batch = [request for _ in range(pairs) for request in admission().requests]
    acknowledged(apply(*batch))
    assert len(statements) == STATEMENTS


@pytest.mark.spec("O20")
def test_a_repeated_batch_only_reads(database: None, statements: list[str]) -> None:
    batch = [request for _ in range(20) for request in admission().requests]
    acknowledged(apply(*batch))
    statements.clear()
    acknowledged(apply(*batch))
    assert all(statement.lstrip().startswith("SELECT") for statement in statements)
    assert len(statements) == 2


def _at_the_end_of_the_inbox(act: Callable[[], None]) -> Callable[[str], None]:
    """A hook that acts once, when the effect is written and not yet committed."""

    def hook(step: str) -> None:
        if step == "in_inbox":
            steps.hook = None
            act()

    return hook


def administer(statement: str, *parameters: object) -> None:
    """Run a statement as the administrator of core's server."""
    address = address_of(owner_named("core"))
    with psycopg.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, dbname=address.name
    ) as administrator:
        administrator.execute(statement, parameters)


@pytest.fixture
def hooked() -> Iterator[None]:
    yield
    steps.hook = None


@pytest.mark.spec("O20")
@pytest.mark.trap("D13")
def test_a_backend_that_is_terminated_before_the_commit_costs_nothing_but_another_try(
    database: None, hooked: None
) -> None:
    batch = [request for _ in range(20) for request in admission().requests]

    def terminate() -> None:
        backend = one("SELECT pg_backend_pid()")
        administer("SELECT pg_terminate_backend(%s, 5000)", backend)

    steps.hook = _at_the_end_of_the_inbox(terminate)
    acknowledged(apply(*batch))
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 40
    assert one("SELECT sum(applied_events) FROM projection_build_runs") == 40


@pytest.mark.spec("O20")
@pytest.mark.trap("D13")
def test_a_database_that_is_gone_is_reported_at_once_and_nothing_is_acknowledged(database: None, hooked: None) -> None:
    batch = [request for _ in range(20) for request in admission().requests]
    connection = connections["default"]
    port = connection.settings_dict["PORT"]

    def disappear() -> None:
        connection.connection.close()
        connection.settings_dict["PORT"] = 1

    steps.hook = _at_the_end_of_the_inbox(disappear)
    try:
        with pytest.raises((OperationalError, InterfaceError)):
            apply(*batch)
    finally:
        connection.settings_dict["PORT"] = port
    assert one("SELECT count(*) FROM operations_projection_applied_receipts") == 0
    acknowledged(apply(*batch))


@pytest.mark.spec("O20")
@pytest.mark.trap("D13")
def test_an_answer_lost_after_the_commit_is_given_again(database: None) -> None:
    batch = admission().requests
    first = acknowledged(apply(*batch))
    connections["default"].close()
    assert [answer.receipt for answer in acknowledged(apply(*batch))] == [answer.receipt for answer in first]


@pytest.mark.spec("O26")
@pytest.mark.trap("D11")
def test_an_acknowledgement_is_never_given_inside_somebody_elses_transaction(database: None) -> None:
    before = state_of_projection()
    with transaction.atomic(using="default"):
        verdicts = apply(delivery(admission().run))
        assert type(verdicts[0]).__name__ == "Retryable"
        assert one("SELECT 1") == 1
    assert state_of_projection() == before

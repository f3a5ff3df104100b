"""The answer to COMMIT does not come, or COMMIT itself fails: the marker says how it ended, and nothing else does."""

from pathlib import Path

import pytest
from django.db import DatabaseError, IntegrityError, OperationalError, connections, transaction

from billing.commercial import hooks
from tests.commercial.conftest import swept_now
from tests.commercial.losing_proxy import Lost, through_proxy
from tests.commercial.make import AT, BUSINESS, markers, operation, states, subscribe, usage, used_and_held
from tests.commercial.notes import notes, put_file, store, write_note

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("C3", "C9")]


def test_a_commit_whose_answer_is_lost_is_found_by_its_marker_and_counted_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contract = subscribe()
    (tmp_path / "a").write_text("old")
    with through_proxy(BUSINESS, monkeypatch) as proxy:
        connections[BUSINESS].ensure_connection()
        proxy.armed = Lost.ANSWER

        def disarm() -> None:
            proxy.armed = None

        with hooks.business_transaction(using=BUSINESS) as work:
            work.reserve(operation(contract), quantity=1, at=AT)
            put_file(work, tmp_path / "a", "new")
            store("a", "new")
            monkeypatch.setattr("billing.commercial.business_transaction.decide", _after(disarm))
        assert notes() == {"a": "new"}
    assert (usage(), states()) == (1, [("settled", 1, "completion")])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def _after(first: object) -> object:
    """`decide`, on a wire that works again: the question must arrive where the COMMIT's answer did not."""

    def decide(*arguments: object, **named: object) -> object:
        first()  # type: ignore[operator]  # a function of no arguments
        return hooks.decide(*arguments, **named)  # type: ignore[arg-type]  # passed on as they are

    return decide


def test_a_commit_that_never_arrived_is_refused_and_everything_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contract = subscribe()
    (tmp_path / "a").write_text("old")
    with through_proxy(BUSINESS, monkeypatch) as proxy:
        connections[BUSINESS].ensure_connection()
        proxy.armed = Lost.REQUEST
        monkeypatch.setattr(
            "billing.commercial.business_transaction.decide", _after(lambda: setattr(proxy, "armed", None))
        )
        monkeypatch.setattr("billing.commercial.ending.decide", _after(lambda: setattr(proxy, "armed", None)))
        with pytest.raises(OperationalError):
            write_note(contract, "a", "new", place=tmp_path, request="r")
    assert (usage(), used_and_held(), states()) == (0, (0, 0), [("released", 1, "compensation")])
    assert (notes(), [path.read_text() for path in tmp_path.iterdir()]) == ({}, ["old"])
    write_note(contract, "a", "new", place=tmp_path, request="r")
    assert (usage(), notes()) == (1, {"a": "new"})


@pytest.mark.parametrize("lost", [Lost.REQUEST, Lost.ANSWER])
def test_where_nobody_can_be_asked_everything_is_left_as_it_is_until_the_sweep_finds_out(
    lost: Lost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    contract = subscribe()
    (tmp_path / "a").write_text("old")
    with through_proxy(BUSINESS, monkeypatch) as proxy:
        connections[BUSINESS].ensure_connection()
        proxy.armed = lost
        proxy.shut()
        with pytest.raises(hooks.OutcomeUnknown) as unknown:
            write_note(contract, "a", "new", place=tmp_path)
        assert isinstance(unknown.value.__cause__, DatabaseError)
    assert (states(), len(list(tmp_path.iterdir()))) == ([("reserved", 1, None)], 2)
    found = swept_now()
    committed = lost is Lost.ANSWER
    assert (found.settled, found.released) == ((1, 0) if committed else (0, 1))
    assert usage() == len(notes()) == int(committed)


def test_a_commit_that_a_constraint_refuses_is_a_rollback(tmp_path: Path) -> None:
    contract = subscribe()
    with pytest.raises(IntegrityError), hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        put_file(work, tmp_path / "a", "new")
        with connections[BUSINESS].cursor() as cursor:
            cursor.execute("INSERT INTO test_shelf VALUES ('no such note')")
    assert (states(), usage(), list(tmp_path.iterdir())) == ([("released", 1, "compensation")], 0, [])
    assert markers() == [("reservation", 1, "refused")]


def test_a_hook_that_raises_after_the_commit_does_not_undo_it(tmp_path: Path) -> None:
    contract = subscribe()

    def hook() -> None:
        raise KeyError("a hook of somebody else")

    with pytest.raises(KeyError), hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        put_file(work, tmp_path / "a", "new")
        store("a", "new")
        transaction.on_commit(hook, using=BUSINESS)
    assert (usage(), notes(), (tmp_path / "a").read_text()) == (1, {"a": "new"}, "new")


def test_a_connection_that_was_closed_inside_says_that_nothing_was_committed(tmp_path: Path) -> None:
    contract = subscribe()
    with pytest.raises(hooks.TransactionLost), hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        put_file(work, tmp_path / "a", "new")
        store("a", "new")
        connections[BUSINESS].close()
    assert (notes(), usage(), list(tmp_path.iterdir())) == ({}, 0, [])
    assert states() == [("released", 1, "compensation")]


def test_billing_that_is_away_after_the_commit_is_told_by_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        store("a", "new")
        connections["billing"].close()
        monkeypatch.setitem(connections["billing"].settings_dict, "PORT", 1)
    monkeypatch.undo()
    connections["billing"].close()
    assert (notes(), states(), usage()) == ({"a": "new"}, [("reserved", 1, None)], 0)
    assert swept_now().settled == 1
    assert (states(), usage()) == ([("settled", 1, "sweep")], 1)

"""Completions in order, compensations in reverse, savepoints included; and what never comes between (C3)."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError, connections, transaction

from billing.commercial import hooks
from billing.commercial.hooks import PermitState
from tests.commercial.conftest import swept_now
from tests.commercial.make import (
    AT,
    BUSINESS,
    markers,
    nothing_is_written,
    operation,
    states,
    subscribe,
    usage,
    used_and_held,
)
from tests.commercial.notes import Interrupted, notes, put_file, store, write_note
from tests.observability.test_metrics import counted

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("C3")]


@pytest.fixture
def told() -> list[str]:
    """What the callbacks said, in order."""
    return []


def both(told: list[str], name: str) -> dict[str, Callable[[], None]]:
    """A pair of callbacks that say that they ran."""
    return {"complete": partial(told.append, f"+{name}"), "compensate": partial(told.append, f"-{name}")}


def test_completions_run_in_order_after_the_commit(told: list[str]) -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS) as work:
        for name in ("a", "b"):
            work.reserve(operation(contract, name), quantity=1, at=AT)
            work.register(**both(told, name))
            store(name, name)
        work.register(complete=lambda: told.append(f"usage {usage()}, notes {len(notes())}"))
        assert (told, usage(), used_and_held()) == ([], 0, (0, 2))
    assert told == ["+a", "+b", "usage 2, notes 2"]
    assert states() == [("settled", 1, "completion")] * 2


def test_compensations_run_in_reverse_after_the_rollback(told: list[str]) -> None:
    contract = subscribe()
    with pytest.raises(Interrupted), hooks.business_transaction(using=BUSINESS) as work:
        work.register(compensate=lambda: told.append(f"held {used_and_held()[1]}"))
        for name in ("a", "b"):
            work.reserve(operation(contract, name), quantity=1, at=AT)
            work.register(**both(told, name))
            store(name, name)
        raise Interrupted
    assert told == ["-b", "-a", "held 0"]
    assert (usage(), used_and_held(), notes()) == (0, (0, 0), {})
    assert states() == [("released", 1, "compensation")] * 2
    assert markers() == [("reservation", 1, "refused")] * 2


def test_a_rolled_back_operation_is_tried_again_in_the_same_period(tmp_path: Path) -> None:
    contract = subscribe(limit=1)
    for _ in range(3):
        with pytest.raises(Interrupted):
            write_note(contract, "a", "text", place=tmp_path, fails=True, request="r")
        assert (usage(), used_and_held(), list(tmp_path.iterdir())) == (0, (0, 0), [])
    write_note(contract, "a", "text", place=tmp_path, request="r")
    assert (usage(), states()) == (1, [("settled", 4, "completion")])
    assert [one[1:] for one in markers()] == [(1, "refused"), (2, "refused"), (3, "refused"), (4, "committed")]


@pytest.mark.spec("C6")
def test_a_refused_quota_touches_nothing(tmp_path: Path) -> None:
    contract = subscribe(limit=1)
    write_note(contract, "a", "old", place=tmp_path)
    with pytest.raises(hooks.QuotaExceeded):
        write_note(contract, "a", "new", place=tmp_path)
    assert (notes(), (tmp_path / "a").read_text(), len(list(tmp_path.iterdir()))) == ({"a": "old"}, "old", 1)
    assert (usage(), len(states()), len(markers())) == (1, 1, 1)


@pytest.mark.spec("C8")
def test_without_a_meter_business_and_files_work_and_no_commercial_row_is_written(tmp_path: Path) -> None:
    assert write_note(None, "a", "text").state is PermitState.UNMETERED
    assert nothing_is_written()
    with pytest.raises(Interrupted):
        write_note(None, "b", "text", place=tmp_path, fails=True)
    assert nothing_is_written()
    write_note(None, "c", "text", place=tmp_path)
    assert markers() == [("work", 1, "committed")], "files follow a commit that can be proven"
    assert (notes(), states(), [path.name for path in tmp_path.iterdir()]) == ({"a": "text", "c": "text"}, [], ["c"])


@pytest.mark.spec("C2")
def test_a_repeat_of_what_was_counted_works_and_counts_nothing(tmp_path: Path) -> None:
    contract = subscribe(limit=1)
    write_note(contract, "a", "first", place=tmp_path, request="r")
    permit = write_note(contract, "a", "second", place=tmp_path, request="r")
    assert permit.state is PermitState.SETTLED
    assert (usage(), used_and_held(), notes(), (tmp_path / "a").read_text()) == (1, (1, 0), {"a": "second"}, "second")


@pytest.mark.trap("F3")
def test_one_file_replaced_again_and_again_in_one_transaction_ends_as_it_began_or_as_it_should(
    tmp_path: Path,
) -> None:
    contract = subscribe(limit=100)
    path = tmp_path / "a"
    path.write_text("before")

    def replace_thrice(*, fails: bool) -> None:
        with hooks.business_transaction(using=BUSINESS) as work:
            for body in ("A", "B", "C"):
                work.reserve(operation(contract), quantity=1, at=AT)
                put_file(work, path, body)
            if fails:
                raise Interrupted

    with pytest.raises(Interrupted):
        replace_thrice(fails=True)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]
    replace_thrice(fails=False)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["C"]
    assert (usage(), used_and_held()) == (3, (3, 0))


@pytest.mark.trap("F3")
def test_a_rolled_back_savepoint_is_compensated_at_once_and_its_quota_when_all_has_ended(
    told: list[str], tmp_path: Path
) -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS) as work:
        work.register(**both(told, "outer"))
        write_note(contract, "kept", "text", place=tmp_path)
        with pytest.raises(Interrupted), hooks.business_transaction(using=BUSINESS) as inner:
            inner.register(**both(told, "inner 1"))
            inner.reserve(operation(contract, "lost"), quantity=2, at=AT)
            put_file(inner, tmp_path / "kept", "overwritten")
            inner.register(**both(told, "inner 2"))
            raise Interrupted
        assert told == ["-inner 2", "-inner 1"]
        assert [path.read_text() for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["text"]
        assert used_and_held() == (0, 3)
        store("after", "text")
    assert told == ["-inner 2", "-inner 1", "+outer"]
    assert (usage(), used_and_held(), notes()) == (1, (1, 0), {"kept": "text", "after": "text"})
    assert states() == [("settled", 1, "completion"), ("released", 1, "compensation")]


def test_a_released_savepoint_shares_the_fate_of_the_transaction_around_it(told: list[str], tmp_path: Path) -> None:
    contract = subscribe()
    with pytest.raises(Interrupted), hooks.business_transaction(using=BUSINESS) as work:
        work.register(**both(told, "outer"))
        write_note(contract, "inner", "text", place=tmp_path)
        with hooks.business_transaction(using=BUSINESS) as inner:
            inner.register(**both(told, "inner"))
            with hooks.business_transaction(using=BUSINESS) as innermost:
                innermost.register(**both(told, "innermost"))
        raise Interrupted
    assert told == ["-innermost", "-inner", "-outer"]
    assert (usage(), used_and_held(), notes(), list(tmp_path.iterdir())) == (0, (0, 0), {}, [])


def test_an_operation_of_a_rolled_back_savepoint_is_tried_again_in_the_same_transaction() -> None:
    contract = subscribe(limit=1)
    with hooks.business_transaction(using=BUSINESS):
        with pytest.raises(Interrupted):
            write_note(contract, "a", "text", request="r", fails=True)
        write_note(contract, "a", "text", request="r")
    assert (usage(), used_and_held(), notes()) == (1, (1, 0), {"a": "text"})
    assert states() == [("settled", 1, "completion")]


def test_a_statement_that_fails_in_a_savepoint_costs_only_the_savepoint() -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS):
        write_note(contract, "a", "text")
        with pytest.raises(DataError), hooks.business_transaction(using=BUSINESS) as inner:
            inner.reserve(operation(contract), quantity=1, at=AT)
            with connections[BUSINESS].cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        write_note(contract, "b", "text")
    assert (usage(), used_and_held(), list(notes())) == (2, (2, 0), ["a", "b"])


def test_a_silent_rollback_is_a_rollback(told: list[str]) -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS) as work:
        work.register(**both(told, "outer"))
        write_note(contract, "a", "text")
        with hooks.business_transaction(using=BUSINESS) as inner:
            inner.register(**both(told, "inner"))
            transaction.set_rollback(True, using=BUSINESS)
        assert told == ["-inner"]
        transaction.set_rollback(True, using=BUSINESS)
    assert told == ["-inner", "-outer"]
    assert (usage(), used_and_held(), notes()) == (0, (0, 0), {})


def failures(phase: str) -> float:
    return counted("commercial_callbacks_failed_total").get((("phase", phase),), 0.0)


def test_a_completion_that_raises_is_logged_and_counted_and_stops_no_other_one(
    told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    contract = subscribe()
    before = failures("completion")

    def broken() -> None:
        raise OSError("the disk is full of secrets.pdf")

    with hooks.business_transaction(using=BUSINESS) as work:
        work.register(**both(told, "a"))
        work.register(complete=broken)
        work.reserve(operation(contract), quantity=1, at=AT)
        store("a", "text")
        work.register(**both(told, "b"))
    assert told == ["+a", "+b"]
    assert (notes(), usage()) == ({"a": "text"}, 1)
    assert failures("completion") == before + 1
    logged: Any = caplog.records[-1].msg
    assert (logged["event"], logged["phase"]) == ("quota_callback_failed", "completion")


def test_a_settlement_that_fails_leaves_the_reservation_to_the_sweep(settings: Any) -> None:
    contract = subscribe()
    with hooks.business_transaction(using=BUSINESS) as work:
        permit = work.reserve(operation(contract), quantity=1, at=AT)
        store("a", "text")
        with connections["billing"].cursor() as cursor:
            cursor.execute("SET lock_timeout = '20ms'")
        locking = transaction.atomic(using="billing.schema")
        locking.__enter__()
        with connections["billing.schema"].cursor() as cursor:
            cursor.execute("LOCK TABLE usage_meter_events IN ACCESS EXCLUSIVE MODE")
    locking.__exit__(None, None, None)
    assert (states(), usage()) == ([("reserved", 1, None)], 0)
    assert swept_now().settled == 1
    assert (usage(), hooks.settle(permit), usage()) == (1, hooks.Ended.SETTLED, 1)


def test_a_compensation_that_raises_stops_no_other_one(told: list[str]) -> None:
    contract = subscribe()
    before = failures("compensation")

    def broken() -> None:
        raise PermissionError("no")

    with pytest.raises(Interrupted), hooks.business_transaction(using=BUSINESS) as work:
        work.reserve(operation(contract), quantity=1, at=AT)
        work.register(**both(told, "a"))
        work.register(compensate=broken)
        work.register(**both(told, "b"))
        raise Interrupted
    assert (told, used_and_held()) == (["-b", "-a"], (0, 0))
    assert failures("compensation") == before + 1


def test_a_plain_transaction_around_or_a_plain_savepoint_inside_is_refused() -> None:
    contract = subscribe()
    with (
        transaction.atomic(using=BUSINESS),
        pytest.raises(hooks.WrongTransaction),
        hooks.business_transaction(using=BUSINESS),
    ):
        pass
    with hooks.business_transaction(using=BUSINESS) as work:
        with transaction.atomic(using=BUSINESS):
            for call in (
                lambda: work.reserve(operation(contract), quantity=1, at=AT),
                lambda: work.register(complete=lambda: None),
                work.marker,
                lambda: write_note(contract, "a", "text"),
            ):
                with pytest.raises(hooks.WrongTransaction):
                    call()
        with hooks.business_transaction(using=BUSINESS), pytest.raises(hooks.WrongTransaction):
            work.register(complete=lambda: None)
    with pytest.raises(hooks.WrongTransaction):
        work.register(complete=lambda: None)
    assert nothing_is_written()


def test_a_scope_without_anything_to_follow_leaves_nothing() -> None:
    with hooks.business_transaction(using=BUSINESS), hooks.business_transaction(using=BUSINESS):
        store("a", "text")
    assert notes() == {"a": "text"}
    assert nothing_is_written()


def test_the_marker_of_a_scope_tells_at_any_later_time_how_the_scope_ended() -> None:
    keys = {}
    with hooks.business_transaction(using=BUSINESS) as work:
        keys["committed"] = work.marker()
        assert work.marker() == keys["committed"]
        with pytest.raises(Interrupted), hooks.business_transaction(using=BUSINESS) as inner:
            keys["rolled back"] = inner.marker()
            raise Interrupted
        with hooks.business_transaction(using=BUSINESS) as inner:
            keys["released"] = inner.marker()
    ended = {name: hooks.decide(key, using=BUSINESS, patience=1) for name, key in keys.items()}
    assert ended == {
        "committed": hooks.Decision.COMMITTED,
        "rolled back": hooks.Decision.REFUSED,
        "released": hooks.Decision.COMMITTED,
    }
    with transaction.atomic(using=BUSINESS), pytest.raises(hooks.WrongTransaction):
        hooks.decide(keys["committed"], using=BUSINESS, patience=1)
    with pytest.raises(hooks.WrongTransaction):
        hooks.mark(keys["committed"], using=BUSINESS)


def test_a_permit_asked_for_before_the_transaction_is_tied_to_it() -> None:
    contract = subscribe()
    permit = hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    with hooks.business_transaction(using=BUSINESS) as work:
        work.bind(permit)
        store("a", "text")
    assert (usage(), states()) == (1, [("settled", 1, "completion")])
    lost = hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    hooks.release(lost)
    with pytest.raises(hooks.ReservationLost), hooks.business_transaction(using=BUSINESS) as work:
        work.bind(lost)
    assert used_and_held() == (1, 0)


def test_an_error_of_the_block_is_the_error_that_the_caller_sees() -> None:
    with pytest.raises(ZeroDivisionError), hooks.business_transaction(using=BUSINESS) as work:
        work.register(compensate=lambda: 1 / 0)
        raise ZeroDivisionError("the block's own")

"""What business code is answered that asks for quota: limits, identities, contracts, and what fails closed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections, transaction

from billing.commercial import hooks
from billing.commercial.hooks import Ended, Operation, Permit, PermitState
from billing.commercial.subscriptions import end_subscription
from tests.admin.test_login import closed_port
from tests.commercial.make import (
    AT,
    BUSINESS,
    Contract,
    nothing_is_written,
    operation,
    plan,
    rows,
    states,
    subscribe,
    usage,
    used_and_held,
)

pytestmark = [pytest.mark.usefixtures("database")]


def reserve(wanted: Operation, *, quantity: int = 1, at: datetime = AT) -> Permit:
    return hooks.reserve(wanted, quantity=quantity, using=BUSINESS, at=at)


def commit(permit: Permit) -> Ended:
    """The business transaction of a permit, and its settlement."""
    with transaction.atomic(using=BUSINESS):
        hooks.mark(permit.marker, using=BUSINESS)
    return hooks.settle(permit)


@pytest.mark.spec("C1")
def test_used_and_held_and_wanted_together_never_exceed_the_limit() -> None:
    contract = subscribe(limit=10)
    used, held = (reserve(operation(contract), quantity=quantity) for quantity in (4, 3))
    assert commit(used) is Ended.SETTLED
    assert used_and_held() == (4, 3)
    with pytest.raises(hooks.QuotaExceeded) as refused:
        reserve(operation(contract), quantity=4)
    assert refused.value.standing == hooks.Standing(hard_limit=10, used=4, held=3, requested=4)
    assert refused.value.standing.free == 3
    assert reserve(operation(contract), quantity=3).holds_quota
    assert used_and_held() == (4, 6)
    assert hooks.release(held) is Ended.RELEASED
    assert (used_and_held(), usage()) == ((4, 3), 4)


@pytest.mark.spec("C1")
@pytest.mark.parametrize(("limit", "quantity"), [(0, 1), (0, 0), (7, 7), (7, 8), (2**53 - 1, 2**53 - 1)])
def test_the_limit_itself_is_still_allowed(limit: int, quantity: int) -> None:
    contract = subscribe(limit=limit, basis="bytes")
    wanted = operation(contract, basis="bytes")
    if quantity > limit:
        with pytest.raises(hooks.QuotaExceeded):
            reserve(wanted, quantity=quantity)
        assert states() == []
    else:
        assert reserve(wanted, quantity=quantity).holds_quota
        assert used_and_held() == (0, quantity)


@pytest.mark.parametrize("quantity", [-1, 2**53, True, 1.5, "1", None])
def test_a_quantity_without_sense_is_a_mistake_of_the_caller(quantity: Any) -> None:
    with pytest.raises(ValueError, match="whole number"):
        reserve(operation(subscribe()), quantity=quantity)
    with pytest.raises(ValueError, match="time zone"):
        reserve(operation(subscribe()), at=datetime(2026, 7, 17))  # a naive time is the case


@pytest.mark.spec("C2")
def test_the_same_operation_is_one_reservation_until_it_ends() -> None:
    contract = subscribe()
    first, again = reserve(operation(contract, "a")), reserve(operation(contract, "a"))
    assert first == again
    assert (states(), used_and_held()) == ([("reserved", 1, None)], (0, 1))
    assert commit(first) is Ended.SETTLED
    after = reserve(operation(contract, "a"))
    assert (after.state, after.holds_quota) == (PermitState.SETTLED, False)
    assert hooks.settle(after) is hooks.release(after) is Ended.NOTHING
    assert (usage(), used_and_held()) == (1, (1, 0))


@pytest.mark.spec("C2")
@pytest.mark.parametrize(
    "other",
    [{"tool": "papers"}, {"dimension": "note.read"}, {"identity": "b"}],
    ids=["another tool", "another dimension", "another identity"],
)
def test_another_operation_is_another_reservation(other: dict[str, str]) -> None:
    contract = subscribe()
    subscribe(tenant=contract.tenant_id, tool="papers", dimension="note.write")
    subscribe(tenant=contract.tenant_id, tool="notes", dimension="note.read")
    reserve(operation(contract, "a"))
    identity = other.pop("identity", "a")
    reserve(operation(contract, identity, **other))  # type: ignore[arg-type]  # tool or dimension
    assert len(states()) == 2


def test_identities_are_told_apart_by_their_parts_and_tenants() -> None:
    contract = subscribe()
    for identity in (("a", "b"), ("ab",), ("a,b",), ("a", "", "b")):
        if all(identity):
            reserve(operation(contract, *identity))
    reserve(operation(subscribe(), "a", "b"))
    assert len(states()) == 4
    with pytest.raises(ValueError, match="no empty part"):
        operation(contract, "a", "", "b")


@pytest.mark.spec("C2")
@pytest.mark.trap("M9")
@pytest.mark.parametrize("stands", ["reserved", "settled", "released"])
def test_the_same_operation_with_another_quantity_is_a_conflict(stands: str) -> None:
    contract = subscribe()
    permit = reserve(operation(contract, "a"), quantity=2)
    if stands == "settled":
        commit(permit)
    if stands == "released":
        hooks.release(permit)
    before = rows("SELECT * FROM commercial_runtime_reservations")
    with pytest.raises(hooks.OperationConflict):
        reserve(operation(contract, "a"), quantity=3)
    assert rows("SELECT * FROM commercial_runtime_reservations") == before
    assert reserve(operation(contract, "a"), quantity=2).reservation_id == permit.reservation_id


@pytest.mark.spec("C2")
def test_a_released_operation_is_reopened_in_its_period_after_a_fresh_check() -> None:
    contract = subscribe(limit=2)
    first = reserve(operation(contract, "a"), quantity=2)
    assert hooks.release(first) is Ended.RELEASED
    rival = reserve(operation(contract, "b"), quantity=1)
    with pytest.raises(hooks.QuotaExceeded):
        reserve(operation(contract, "a"), quantity=2)
    assert hooks.release(rival) is Ended.RELEASED
    again = reserve(operation(contract, "a"), quantity=2)
    assert (again.reservation_id, again.generation) == (first.reservation_id, 2)
    assert commit(again) is Ended.SETTLED
    assert used_and_held() == (2, 0)
    assert rows("SELECT count(*) FROM commercial_entitlement_periods") == [(1,)]


@pytest.mark.spec("C2")
def test_an_operation_released_in_one_period_is_asked_again_against_the_next_one() -> None:
    contract = subscribe(limit=1)
    hooks.release(reserve(operation(contract, "a")))
    reserve(operation(contract, "other"))
    later = AT + timedelta(days=31)
    again = reserve(operation(contract, "a"), at=later)
    assert again.generation == 2
    taken = rows("SELECT starts_at, taken_quantity FROM commercial_entitlement_periods ORDER BY starts_at")
    assert taken == [(datetime(2026, 7, 1, tzinfo=UTC), 1), (datetime(2026, 8, 1, tzinfo=UTC), 1)]


@pytest.mark.spec("C2")
@pytest.mark.trap("M8", "M5")
def test_what_was_held_in_one_period_and_settled_after_it_counts_there_and_once() -> None:
    contract = subscribe(limit=1)
    permit = reserve(operation(contract, "a"))
    later = AT + timedelta(days=31)
    assert reserve(operation(contract, "a"), at=later) == permit
    assert commit(permit) is Ended.SETTLED
    assert hooks.settle(permit) is Ended.SETTLED
    assert reserve(operation(contract, "a"), at=later).state is PermitState.SETTLED
    assert rows("SELECT occurred_at, quantity FROM usage_meter_events") == [(AT, 1)]
    assert reserve(operation(contract), at=later).holds_quota


@pytest.mark.spec("C8")
def test_without_a_meter_work_goes_on_and_nothing_is_written() -> None:
    contract = subscribe()
    without = [
        operation(None),
        operation(contract, tool="papers"),
        operation(contract, dimension="note.read"),
    ]
    for wanted in without:
        permit = reserve(wanted, quantity=10**9)
        assert (permit.state, permit.holds_quota) == (PermitState.UNMETERED, False)
        assert hooks.settle(permit) is hooks.release(permit) is Ended.NOTHING
        with pytest.raises(LookupError):
            _ = permit.marker
    assert reserve(operation(contract), at=datetime(2025, 12, 31, 23, 59, tzinfo=UTC)).state is PermitState.UNMETERED
    assert nothing_is_written()


def test_a_wrong_unit_is_refused_before_anything_is_written() -> None:
    contract = subscribe(basis="events")
    with pytest.raises(hooks.WrongQuantityBasis):
        reserve(operation(contract, basis="bytes"))
    assert (states(), used_and_held()) == ([], (0, 0))


def test_two_subscriptions_never_count_the_same_at_the_same_time() -> None:
    contract = subscribe()
    with pytest.raises(hooks.AmbiguousMeter):
        subscribe(tenant=contract.tenant_id, starts_on="2026-03-01")
    with pytest.raises(hooks.AmbiguousMeter):
        subscribe(tenant=contract.tenant_id, starts_on="2025-01-01", ends_on="2026-01-02")
    before = subscribe(tenant=contract.tenant_id, starts_on="2025-01-01", ends_on="2026-01-01")
    assert before.tenant_id == contract.tenant_id
    subscribe(tenant=contract.tenant_id, tool="papers")


def test_after_its_end_a_subscription_counts_nothing_and_the_next_one_takes_over_at_that_moment() -> None:
    contract = subscribe(limit=5)
    first = reserve(operation(contract), quantity=5)
    end = AT + timedelta(hours=1)
    assert end_subscription(subscription_id=contract.subscription_id, at=end) is True
    assert end_subscription(subscription_id=contract.subscription_id, at=end) is False
    assert reserve(operation(contract), at=end).state is PermitState.UNMETERED
    with pytest.raises(hooks.QuotaExceeded):
        reserve(operation(contract), at=end - timedelta(microseconds=1))
    subscribe(tenant=contract.tenant_id, limit=1, starts_on="2026-07-18")
    assert reserve(operation(contract), at=end + timedelta(days=1)).holds_quota
    assert commit(first) is Ended.SETTLED, "what was held before the end is counted after it"


def test_a_known_operation_is_answered_though_its_contract_has_ended() -> None:
    contract = subscribe()
    settled, held = reserve(operation(contract, "settled")), reserve(operation(contract, "held"))
    commit(settled)
    end_subscription(subscription_id=contract.subscription_id, at=AT + timedelta(hours=1))
    later = AT + timedelta(days=2)
    assert reserve(operation(contract, "settled"), at=later).state is PermitState.SETTLED
    assert reserve(operation(contract, "held"), at=later) == held
    hooks.release(held)
    assert reserve(operation(contract, "held"), at=later).state is PermitState.UNMETERED


@pytest.mark.trap("M7")
def test_without_the_commercial_database_nothing_may_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    contract = subscribe()
    connections["billing"].close()
    monkeypatch.setitem(connections["billing"].settings_dict, "PORT", closed_port())
    with pytest.raises(hooks.CommercialUnavailable):
        reserve(operation(contract))
    monkeypatch.undo()
    connections["billing"].close()
    assert (states(), reserve(operation(contract)).holds_quota) == ([], True)


def test_a_lock_that_does_not_come_refuses_and_a_repeat_succeeds() -> None:
    contract = subscribe()
    reserve(operation(contract))
    with connections["billing"].cursor() as cursor:
        cursor.execute("SET lock_timeout = '20ms'")
    with transaction.atomic(using="billing.schema"):
        with connections["billing.schema"].cursor() as cursor:
            cursor.execute("SELECT FROM commercial_entitlement_periods FOR UPDATE")
        with pytest.raises(hooks.CommercialUnavailable):
            reserve(operation(contract, "a"))
    assert reserve(operation(contract, "a")).generation == 1


def test_another_hash_key_is_refused_before_anything_is_counted_twice(settings: Any) -> None:
    contract = subscribe()
    commit(reserve(operation(contract, "a")))
    settings.COMMERCIAL_HASH_KEY = "y" * 40
    with pytest.raises(hooks.WrongHashKey):
        reserve(operation(contract, "a"))
    assert usage() == 1


def test_an_alias_without_markers_and_an_open_transaction_are_refused_before_anything_is_asked() -> None:
    contract = subscribe()
    for alias in ("billing", "default", "attachments.read", "attachments.schema"):
        with pytest.raises(hooks.NoMarkers):
            hooks.reserve(operation(contract), quantity=1, using=alias, at=AT)
    with transaction.atomic(using="billing"), pytest.raises(hooks.WrongTransaction):
        reserve(operation(contract))
    with pytest.raises(LookupError):
        hooks.reserve(operation(contract), quantity=1, using="nowhere", at=AT)
    assert nothing_is_written()


@pytest.mark.parametrize(
    "parts", [{"tool": "Storage"}, {"dimension": "a b"}, {"provider": "Bank AG"}, {"tool": ""}, {"provider": "a.pdf"}]
)
def test_names_that_could_hold_something_else_are_refused(parts: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="fixed in the code"):
        operation(None, **parts)  # type: ignore[arg-type]  # one of the names


@pytest.mark.parametrize(
    "parts",
    [
        {"tenant_kind": "team"}, {"tenant_id": ""}, {"quantity_basis": "pages"}, {"identity": "letters"},
        {"identity": ()}, {"identity": ("a", "")}, {"identity": (7,)},
    ],
)  # fmt: skip
def test_an_operation_of_nobody_or_without_identity_is_a_mistake_of_the_caller(parts: dict[str, Any]) -> None:
    whole = {
        "tenant_kind": "organization", "tenant_id": "org:a", "tool": "t", "dimension": "d", "quantity_basis": "events",
        "identity": ("a",),
    }  # fmt: skip
    with pytest.raises(ValueError, match="An operation"):
        hooks.Operation(**(whole | parts))


def test_a_settlement_without_a_commit_is_refused_and_a_release_after_one_settles() -> None:
    contract = subscribe()
    permit = reserve(operation(contract))
    with pytest.raises(hooks.NotCommitted):
        hooks.settle(permit)
    with transaction.atomic(using=BUSINESS):
        assert hooks.mark(permit.marker, using=BUSINESS)
    assert hooks.release(permit) is Ended.SETTLED
    assert hooks.release(permit) is Ended.SETTLED
    assert (usage(), used_and_held(), states()) == (1, (1, 0), [("settled", 1, "caller")])


def test_a_period_is_opened_once_for_each_entitlement_with_the_limit_of_the_plan() -> None:
    contract = subscribe(limit=3)
    for at in (AT, AT + timedelta(days=1), AT + timedelta(days=40)):
        reserve(operation(contract), at=at)
    assert rows("SELECT hard_limit, taken_quantity FROM commercial_entitlement_periods ORDER BY starts_at") == [
        (3, 2),
        (3, 1),
    ]


def test_a_new_version_of_a_plan_changes_nothing_for_those_who_have_the_old_one() -> None:
    contract = subscribe(limit=1)
    plan(name=contract.plan, version=2, limit=100)
    reserve(operation(contract))
    with pytest.raises(hooks.QuotaExceeded):
        reserve(operation(contract))


def other_tenants() -> list[Contract]:
    return [subscribe(limit=1) for _ in range(3)]


def test_tenants_do_not_share_what_they_have() -> None:
    for contract in other_tenants():
        assert reserve(operation(contract, "same")).holds_quota
    assert used_and_held() == (0, 3)

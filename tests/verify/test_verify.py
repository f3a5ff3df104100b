"""`manage.py verify` finds every broken invariant, reports it under its own id, and nothing else."""

import json
import subprocess
from collections.abc import Callable

import pytest

from config.verify.report import CHECKS, verify
from tests.verify import breakage, breakage_of_telemetry
from tests.verify.breakage import BEHIND_A_CONSTRAINT
from tests.verify.tamper import tamper, undone, without_constraint

BROKEN = [*breakage.BROKEN, *breakage_of_telemetry.BROKEN]
pytestmark = [pytest.mark.usefixtures("legal_world")]


def failing() -> set[str]:
    return {check.id for check, tally in verify().found if tally.violations}


@pytest.mark.spec("O26", "O31")
def test_a_world_in_which_everything_legal_happened_holds() -> None:
    report = verify()
    assert not [tally.samples for _, tally in report.found if tally.violations]
    assert report.ok
    expected = {
        "runs": 3,
        "receipts": 7,
        "quarantined": 1,
        "expired_leases": 2,
        "pending": 3,
        "open_gaps": 1,
        "unlinked_reservations": 1,
        "unconfirmed_reservations": 1,
        "awaiting_consumer": 0,
    }
    assert {name: report.totals[name] for name in expected} == expected
    empty = {check.id for check, tally in report.found if not tally.examined}
    assert empty == {"source_event"}, "the world must give every check something to look at"


@pytest.mark.parametrize(
    ("check", "owner", "statement"),
    [pytest.param(check, owner, statement, id=f"{check}: {what}") for check, what, owner, statement in BROKEN],
)
def test_each_broken_invariant_is_reported_by_its_check_and_by_no_other(check: str, owner: str, statement: str) -> None:
    with undone(owner, statement):
        assert tamper(owner, statement), "the test changed nothing"
        assert failing() == {check}


@pytest.mark.parametrize(
    ("check", "owner", "table", "constraint", "statement"),
    [pytest.param(check, *rest, id=f"{check}: {what}") for check, what, *rest in BEHIND_A_CONSTRAINT],
)
def test_what_a_constraint_refuses_is_reported_once_the_constraint_is_gone(
    check: str, owner: str, table: str, constraint: str, statement: str
) -> None:
    with without_constraint(owner, table, constraint), undone(owner, statement):
        assert tamper(owner, statement)
        assert failing() == {check}


def test_every_check_has_a_test_that_breaks_it() -> None:
    broken = {case[0] for case in BROKEN} | {case[0] for case in BEHIND_A_CONSTRAINT} | {"receipt_event"}
    assert broken == {check.id for check in CHECKS}


def test_a_receipt_of_an_unknown_event_is_reported_with_everything_that_misses_the_event() -> None:
    unlinked = "WHERE event_id IN (SELECT event_id FROM pending_unlinked_reservations)"
    deliveries, events = f"DELETE FROM outbox_deliveries {unlinked}", f"DELETE FROM outbox_events {unlinked}"
    with undone("core", f"{deliveries}; {events}"):
        assert tamper("core", deliveries, events) == 2
        assert "receipt_event" in failing()


def test_the_command_answers_json_and_its_exit_code_is_the_verdict(
    run_django: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    answer = run_django("verify", "--json")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    report = json.loads(answer.stdout)
    assert set(report) == {"ok", "checks", "totals"}
    assert report["ok"] is True
    assert {frozenset(check) for check in report["checks"]} == {frozenset(("id", "examined", "violations", "samples"))}
    forged = "UPDATE ledger_accounts SET balance_picos = balance_picos + 1 WHERE kind = 'wallet'"
    with undone("billing", forged):
        tamper("billing", forged)
        as_json, as_text = run_django("verify", "--json"), run_django("verify")
    assert (as_json.returncode, as_text.returncode) == (1, 1)
    report = json.loads(as_json.stdout)
    assert report["ok"] is False
    (wrong,) = [check for check in report["checks"] if check["violations"]]
    assert wrong["id"] == "ledger_balance"
    assert wrong["samples"][0]["database"] == "billing"
    assert "FAIL  ledger_balance" in as_text.stdout

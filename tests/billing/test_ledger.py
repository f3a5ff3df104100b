import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connections

from billing.ledger.accounts import lock_accounts, open_account
from billing.ledger.errors import (
    AccountConflict,
    InsufficientFunds,
    LedgerError,
    PostingConflict,
    UnbalancedPosting,
    UnknownAccount,
    WrongChargeSource,
)
from billing.ledger.hold import Hold, place_holds, release_holds
from billing.ledger.models import AccountKind, BillingAccount, ChargeSource, LedgerEntry, LedgerPosting, PostingKind
from billing.ledger.post import Entry, Posting, post, translated_transaction
from billing.ledger.recompute import recompute
from billing.ledger.top_up import top_up
from tests.billing.books import balances, funded_account, open_holds
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.usefixtures("database")]
RunCommand = Callable[..., subprocess.CompletedProcess[str]]


def hold(account: str, picos: int, *, hold_id: str = "hold-1", currency: str = "USD") -> None:
    with translated_transaction():
        lock_accounts([account])
        place_holds([Hold(hold_id=hold_id, billing_account_id=account, currency=currency, amount_picos=picos)])


def posted(account: str, *entries: Entry, reference: str = "p-1", currency: str = "USD") -> None:
    with translated_transaction():
        post(
            [
                Posting(
                    reference=reference, kind=PostingKind.TOP_UP, billing_account_id=account, currency=currency,
                    entries=entries,
                )
            ]
        )  # fmt: skip


@pytest.mark.trap("M4")
def test_fifty_parallel_posts_of_one_reference_are_one_posting() -> None:
    account = funded_account(0)
    answers = in_threads([lambda: top_up(reference="invoice-7", billing_account_id=account, amount_picos=5)] * 50)
    assert sorted(answers) == [False] * 49 + [True]
    assert balances(account) == {"wallet": 5, "held": 0, "funding": -5, "revenue": 0}
    assert (LedgerPosting.objects.count(), LedgerEntry.objects.count()) == (1, 2)
    assert recompute().differences == ()


@pytest.mark.trap("M4")
def test_a_reference_stands_for_one_content() -> None:
    account = funded_account(0)
    assert top_up(reference="r", billing_account_id=account, amount_picos=5)
    assert not top_up(reference="r", billing_account_id=account, amount_picos=5)
    with pytest.raises(PostingConflict, match="new reference"):
        top_up(reference="r", billing_account_id=account, amount_picos=6)
    assert balances(account)["wallet"] == 5


@pytest.mark.trap("M4")
@pytest.mark.parametrize(
    ("amounts", "error"), [((-5, 6), UnbalancedPosting), ((5, 5), UnbalancedPosting), ((0,), LedgerError)]
)
def test_entries_that_do_not_sum_to_zero_are_refused_at_commit(
    amounts: tuple[int, ...], error: type[LedgerError]
) -> None:
    account = funded_account(100)
    kinds = (AccountKind.FUNDING, AccountKind.WALLET)
    with pytest.raises(Exception) as caught:  # a count of one entry is refused by a CHECK
        posted(account, *(Entry(kind, amount) for kind, amount in zip(kinds, amounts, strict=False)))
    assert isinstance(caught.value, error) or "ledger_posting_has_two_sides" in str(caught.value)
    assert balances(account)["wallet"] == 100


def test_a_wallet_never_goes_below_zero_also_in_parallel() -> None:
    account = funded_account(100)

    def attempt(number: int) -> bool:
        try:
            hold(account, 30, hold_id=f"hold-{number}")
        except InsufficientFunds:
            return False
        return True

    taken = in_threads([lambda number=number: attempt(number) for number in range(12)])  # type: ignore[misc]  # a default binds the loop's value
    assert sum(taken) == 3
    assert balances(account) == {"wallet": 10, "held": 90, "funding": -100, "revenue": 0}


def test_an_account_that_is_charged_from_telemetry_takes_no_hold() -> None:
    account = funded_account(100, charge_source=ChargeSource.TELEMETRY)
    with pytest.raises(WrongChargeSource, match="never both"):
        hold(account, 1)
    assert balances(account)["held"] == 0


def test_an_amount_in_another_currency_is_refused() -> None:
    account = funded_account(100)
    with pytest.raises(LedgerError):
        hold(account, 1, currency="EUR")
    with pytest.raises(UnknownAccount):
        posted(account, Entry(AccountKind.FUNDING, -1), Entry(AccountKind.WALLET, 1), currency="EUR")


def test_a_hold_is_given_back_once() -> None:
    account = funded_account(100)
    hold(account, 60)

    def release() -> int:
        with translated_transaction():
            lock_accounts([account])
            return len(release_holds(["hold-1", "hold-unknown"]))

    assert sorted(in_threads([release] * 6)) == [0, 0, 0, 0, 0, 1]
    assert (balances(account)["wallet"], open_holds(account)) == (100, [])
    assert LedgerPosting.objects.filter(kind=PostingKind.RELEASE).count() == 1
    assert recompute().differences == ()


def test_opening_an_account_again_changes_nothing_and_differently_is_refused() -> None:
    account = funded_account(0)
    again = {
        "billing_account_id": account, "tenant_kind": "organization", "tenant_id": "org-1", "currency": "USD",
        "charge_source": ChargeSource.RUNS, "price_book_name": "standard",
    }  # fmt: skip
    assert not open_account(**again)  # type: ignore[arg-type]  # the values above
    for other in ({"currency": "EUR"}, {"tenant_id": "org-2"}, {"charge_source": ChargeSource.TELEMETRY}):
        with pytest.raises(AccountConflict):
            open_account(**{**again, **other})  # type: ignore[arg-type]  # likewise
    assert BillingAccount.objects.count() == 1


def test_recompute_finds_a_balance_and_a_hold_that_entries_do_not_explain(run_command: RunCommand) -> None:
    account = funded_account(100)
    hold(account, 40)
    assert run_command("ledger", "recompute").returncode == 0
    with connections["billing.schema"].cursor() as cursor:
        cursor.execute(
            "UPDATE ledger_accounts SET balance_picos = 99 WHERE ledger_account_id = %s", [f"wallet:{account}"]
        )
    result = run_command("ledger", "recompute", "--json")
    document = json.loads(result.stdout.splitlines()[-1])
    assert (result.returncode, document["ok"]) == (1, False)
    wrong = [(d["check"], d["stored"], d["computed"]) for d in document["differences"]]
    assert wrong == [("balance", "99", "60")]


def test_accounts_are_opened_from_a_file_and_topped_up_and_shown(run_command: RunCommand, tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    account = {
        "billingAccountId": "account:a", "tenantKind": "personal", "tenantId": "p", "currency": "USD",
        "chargeSource": "runs", "priceBookName": "standard", "label": "A", "topUpPicos": "1500000000000",
    }  # fmt: skip
    file.write_text(json.dumps([account]))
    for _ in range(2):
        assert run_command("ledger", "open", str(file)).returncode == 0
    assert run_command("ledger", "top-up", "account:a", "1", "--reference", "x").returncode == 0
    assert "1.500000000001 USD" in run_command("ledger", "show", "account:a").stdout
    file.write_text(json.dumps([{**account, "currency": "dollars", "extra": 1}]))
    bad = run_command("ledger", "open", str(file))
    assert bad.returncode == 1
    assert "currency" in bad.stderr
    assert "Traceback" not in bad.stderr
    assert run_command("ledger", "top-up", "account:unknown", "1", "--reference", "y").returncode == 1

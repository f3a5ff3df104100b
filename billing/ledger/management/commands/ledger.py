"""`manage.py ledger open|top-up|show|recompute`"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from billing.ledger.accounts import open_account
from billing.ledger.contracts import AccountFile
from billing.ledger.errors import LedgerError
from billing.ledger.models import BillingAccount, ChargeSource, LedgerAccount
from billing.ledger.recompute import recompute
from billing.ledger.top_up import top_up
from config.owners import owner_named
from outbox.contracts.contract import ContractViolation

PICOS = 10**12


class Command(BaseCommand):
    help = "Billing accounts and their ledger. Amounts are whole pico-units of the account's currency."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        opening = actions.add_parser(
            "open", help="Open the accounts of a JSON file; those that are open are left alone."
        )
        opening.add_argument("file", type=Path, help="A list of accounts, as deploy/demo/accounts.json.")
        topping = actions.add_parser("top-up", help="Credit a wallet once per reference.")
        topping.add_argument("account")
        topping.add_argument("picos", type=int)
        topping.add_argument("--reference", required=True)
        showing = actions.add_parser("show", help="Balances of one account.")
        showing.add_argument("account")
        computing = actions.add_parser(
            "recompute", help="Compare balances and holds with the entries; exit 1 on a difference."
        )
        computing.add_argument("--json", action="store_true")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"open": self._open, "top-up": self._top_up, "show": self._show, "recompute": self._recompute}[action](
                options
            )
        except LedgerError as error:
            raise CommandError(str(error)) from error

    def _open(self, options: dict[str, Any]) -> None:
        try:
            data = options["file"].read_bytes()
            accounts = [AccountFile.from_wire(item) for item in orjson.loads(data)]
        except OSError as error:
            raise CommandError(f"Cannot read {options['file']}: {error.strerror}.") from error
        except (orjson.JSONDecodeError, ContractViolation, TypeError) as error:
            raise CommandError(f"{options['file']}: {error}. Write a list of accounts, as in deploy/demo.") from error
        opened = sum(self._open_one(account) for account in accounts)
        self.stdout.write(f"opened {opened} of {len(accounts)} accounts")

    def _open_one(self, account: AccountFile) -> bool:
        fresh = open_account(
            billing_account_id=account.billing_account_id,
            tenant_kind=account.tenant_kind,
            tenant_id=account.tenant_id,
            currency=account.currency,
            charge_source=ChargeSource(account.charge_source),
            price_book_name=account.price_book_name,
            label=account.label,
        )
        if account.top_up_picos:
            top_up(
                reference=f"opening:{account.billing_account_id}",
                billing_account_id=account.billing_account_id,
                amount_picos=int(account.top_up_picos),
            )
        return fresh

    def _top_up(self, options: dict[str, Any]) -> None:
        if options["picos"] <= 0:
            raise CommandError("A top-up is a positive number of pico-units.")
        fresh = top_up(
            reference=options["reference"], billing_account_id=options["account"], amount_picos=options["picos"]
        )
        self.stdout.write("posted" if fresh else "this reference was posted before; nothing changed")

    def _show(self, options: dict[str, Any]) -> None:
        alias = owner_named("billing").read_alias
        account = BillingAccount.objects.using(alias).filter(billing_account_id=options["account"]).first()
        if account is None:
            raise CommandError(f"There is no billing account {options['account']!r}.")
        self.stdout.write(f"{account.billing_account_id}  {account.tenant_id}  charged from {account.charge_source}")
        for side in LedgerAccount.objects.using(alias).filter(billing_account=account).order_by("kind"):
            whole, rest = divmod(abs(int(side.balance_picos)), PICOS)
            sign = "-" if side.balance_picos < 0 else ""
            self.stdout.write(f"  {side.kind:8} {sign}{whole}.{rest:012d} {side.currency}")

    def _recompute(self, options: dict[str, Any]) -> None:
        result = recompute()
        if options["json"]:
            document = {
                "ok": not result.differences,
                "examined": result.examined,
                "differences": [
                    {"check": d.check, "subject": d.subject, "stored": str(d.stored), "computed": str(d.computed)}
                    for d in result.differences
                ],
            }
            self.stdout.write(orjson.dumps(document).decode())
        else:
            for d in result.differences:
                self.stdout.write(f"{d.check} {d.subject}: stored {d.stored}, computed {d.computed}")
            counts = ", ".join(f"{count} {check}s" for check, count in result.examined.items())
            self.stdout.write(f"examined {counts}; {len(result.differences)} differences")
        if result.differences:
            raise SystemExit(1)

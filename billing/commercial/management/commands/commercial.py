"""`manage.py commercial import-plans|subscribe|end|show|sweep`"""

from argparse import ArgumentParser
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from billing.commercial.catalogue import import_plan, read_plans
from billing.commercial.errors import CommercialError
from billing.commercial.fullness import fullness
from billing.commercial.models import EntitlementPeriod, Subscription
from billing.commercial.subscriptions import end_subscription, open_subscription, read_subscriptions
from billing.commercial.sweep import sweep
from config.owners import owner_named, with_markers


class Command(BaseCommand):
    help = "Plans, subscriptions, how full entitlements are, and the sweep of what killed processes left."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        importing = actions.add_parser("import-plans", help="Import a JSON list of plans; again changes nothing.")
        importing.add_argument("file", type=Path, help="As deploy/demo/plans.json.")
        subscribing = actions.add_parser("subscribe", help="Open a JSON list of subscriptions; again changes nothing.")
        subscribing.add_argument("file", type=Path, help="As deploy/demo/subscriptions.json.")
        ending = actions.add_parser("end", help="End a subscription, once and for all.")
        ending.add_argument("subscription")
        ending.add_argument("--at", required=True, type=_moment, help="With a zone: 2026-12-31T00:00:00+01:00.")
        showing = actions.add_parser("show", help="List subscriptions, or the periods of one.")
        showing.add_argument("subscription", nargs="?")
        sweeping = actions.add_parser("sweep", help="Resolve what killed processes left; exit 1 if something resists.")
        sweeping.add_argument("--held-for", type=float, default=settings.COMMERCIAL_HELD_FOR, metavar="SECONDS")
        sweeping.add_argument("--business", choices=[owner.name for owner in with_markers()], help="Default: all.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        actions: dict[str, Callable[[dict[str, Any]], None]] = {
            "import-plans": self._import,
            "subscribe": self._subscribe,
            "end": self._end,
            "show": self._show,
            "sweep": self._sweep,
        }
        try:
            actions[action](options)
        except CommercialError as error:
            raise CommandError(str(error)) from error

    def _import(self, options: dict[str, Any]) -> None:
        plans = read_plans(_bytes(options["file"]))
        for plan in plans:
            note = "imported" if import_plan(plan) else "was imported before; nothing changed"
            self.stdout.write(f"{plan.reference.ref} {plan.reference.digest} {note}")

    def _subscribe(self, options: dict[str, Any]) -> None:
        files = read_subscriptions(_bytes(options["file"]))
        opened = sum(open_subscription(file) for file in files)
        self.stdout.write(f"opened {opened} of {len(files)} subscriptions")

    def _end(self, options: dict[str, Any]) -> None:
        fresh = end_subscription(subscription_id=options["subscription"], at=options["at"])
        self.stdout.write("ended" if fresh else "it ends there already; nothing changed")

    def _show(self, options: dict[str, Any]) -> None:
        alias = owner_named("billing").read_alias
        rows = Subscription.objects.using(alias).order_by("subscription_id")
        if options["subscription"] is None:
            for row in rows:
                end = f"to {row.ends_at.isoformat()}" if row.ends_at else "open"
                self.stdout.write(
                    f"{row.subscription_id}  {row.tenant_id}  {row.plan_id}  per {row.period_unit}  {end}"
                )
            return
        if not rows.filter(subscription_id=options["subscription"]).exists():
            raise CommandError(f"There is no subscription {options['subscription']!r}.")
        periods = EntitlementPeriod.objects.using(alias).filter(subscription_id=options["subscription"])
        full = fullness([period.period_id for period in periods], alias=alias)
        for period in periods.order_by("starts_at", "entitlement_id"):
            now = full[period.period_id]
            self.stdout.write(
                f"{period.entitlement_id}  {period.starts_at.isoformat()} to {period.ends_at.isoformat()}  "
                f"used {now.used}, held {now.held}, free {now.free} of {now.hard_limit}"
            )

    def _sweep(self, options: dict[str, Any]) -> None:
        owners = [options["business"]] if options["business"] else [owner.name for owner in with_markers()]
        failed = 0
        for name in owners:
            swept = sweep(business=name, held_for=timedelta(seconds=options["held_for"]))
            failed += swept.failed
            self.stdout.write(
                f"{name}: settled {swept.settled}, released {swept.released}, still at work {swept.live}, "
                f"failed {swept.failed}"
            )
        if failed:
            raise SystemExit(1)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error


def _moment(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a moment needs a zone, such as 2026-12-31T00:00:00+01:00")
    return at

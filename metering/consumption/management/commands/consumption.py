"""`manage.py consumption sweep|remark|reissue`"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from metering.consumption.aggregate import KeysUnreadable
from metering.consumption.models import ChargeState
from metering.consumption.repair import reissue, remark
from metering.consumption.sweep import sweep_consumption
from metering.consumption.window_length import WindowLengthChanged
from metering.moment import moment


class Command(BaseCommand):
    help = "Consumption of telemetry: sum windows up and charge them, without Celery; have something done again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        sweeping = actions.add_parser("sweep", help="Sum up, release, charge; exit 1 if anything failed or conflicts.")
        sweeping.add_argument("--at", type=moment, help="As if it were then; default: now.")
        sweeping.add_argument("--patience", type=float, default=600, help="Seconds to work for; default 600.")
        marking = actions.add_parser("remark", help="Sum up windows again, though nothing was received for them.")
        marking.add_argument("--cluster", required=True)
        marking.add_argument("--from", type=moment, required=True, dest="begin")
        marking.add_argument("--to", type=moment, required=True, dest="end", help="The first moment after them.")
        issuing = actions.add_parser("reissue", help="Have a conflicting charge posted as it is summed up here.")
        issuing.add_argument("charge", help="Its id, as the page of charges shows it.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"sweep": self._sweep, "remark": self._remark, "reissue": self._reissue}[action](options)
        except (KeysUnreadable, WindowLengthChanged) as error:
            raise CommandError(str(error)) from error

    def _sweep(self, options: dict[str, Any]) -> None:
        done = sweep_consumption(at=options["at"] or timezone.now(), patience=timedelta(seconds=options["patience"]))
        windows = ", ".join(f"{count} {outcome.value}" for outcome, count in done.windows.items() if count)
        charges = ", ".join(f"{done.charges[state]} {state.value}" for state in ChargeState if done.charges.get(state))
        self.stdout.write(
            f"windows: {windows or 'none due'}; lines released: {done.released}; charges: {charges or 'none due'}"
        )
        if not done.healthy:
            raise SystemExit(1)

    def _remark(self, options: dict[str, Any]) -> None:
        marked = remark(cluster_id=options["cluster"], begin=options["begin"], end=options["end"])
        self.stdout.write(f"{marked} windows will be summed up again")

    def _reissue(self, options: dict[str, Any]) -> None:
        if not reissue(charge_id=options["charge"]):
            raise CommandError(f"There is no conflicting charge {options['charge']!r}.")
        self.stdout.write("it will be posted again")

"""`manage.py clusters create|set|list`"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.owners import owner_named
from metering.clusters.audit import Actor
from metering.clusters.clusters import UNCHANGED, Change, Rate, Unchanged, change_cluster, create_cluster
from metering.clusters.errors import ClustersError
from metering.clusters.models import Cluster, Mode, Sink

AS_SET = "default"
"""Gives sink or rate back to the receiver's own settings."""


class Command(BaseCommand):
    help = "Clusters that send telemetry: create one, set what the receiver does otherwise for it, list them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        creating = actions.add_parser("create", help="Create a cluster. Again with the same values: changes nothing.")
        creating.add_argument("cluster", type=int, help="Its number, as every stored event will carry it.")
        creating.add_argument("--name", required=True)
        creating.add_argument(
            "--mode", required=True, choices=Mode.values, help="By what its tokens' events are charged."
        )
        setting = actions.add_parser("set", help="Change a cluster. What is not named stays.")
        setting.add_argument("cluster", type=int)
        setting.add_argument("--name")
        setting.add_argument("--mode", choices=Mode.values, help="For tokens that are minted from now on.")
        for parsing in (creating, setting):
            parsing.add_argument(
                "--sink", choices=[*Sink.values, AS_SET], help="A step of the ramp: logging, fanout, timescale."
            )
            parsing.add_argument(
                "--rate", help=f"Requests per second, sustained, with --burst; or {AS_SET}.", metavar=f"N|{AS_SET}"
            )
            parsing.add_argument("--burst", type=int, help="Requests at once.")
        actions.add_parser("list", help="Every cluster, with what is set for it.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"create": self._create, "set": self._set, "list": self._list}[action](options)
        except ClustersError as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        sink, rate = _sink(options), _rate(options)
        new = create_cluster(
            cluster_id=options["cluster"],
            name=options["name"],
            mode=Mode(options["mode"]),
            sink=None if isinstance(sink, Unchanged) else sink,
            rate=None if isinstance(rate, Unchanged) else rate,
            actor=Actor.of_command(),
        )
        self.stdout.write(f"cluster {options['cluster']} {'created' if new else 'is there already, as you say'}")

    def _set(self, options: dict[str, Any]) -> None:
        change = Change(
            name=UNCHANGED if options["name"] is None else options["name"],
            mode=UNCHANGED if options["mode"] is None else Mode(options["mode"]),
            sink=_sink(options),
            rate=_rate(options),
        )
        changed = change_cluster(cluster_id=options["cluster"], change=change, actor=Actor.of_command())
        self.stdout.write(f"cluster {options['cluster']} {'changed' if changed else 'was so already; nothing changed'}")

    def _list(self, options: dict[str, Any]) -> None:
        for cluster in Cluster.objects.using(owner_named("metering").read_alias).order_by("cluster_id").iterator():
            rate = f"{cluster.rate_per_second}/s, burst {cluster.rate_burst}" if cluster.rate_per_second else AS_SET
            self.stdout.write(
                f"{cluster.cluster_id}  {cluster.name}  mode {cluster.token_mode}  sink {cluster.sink or AS_SET}  "
                f"rate {rate}"
            )


def _sink(options: dict[str, Any]) -> Sink | Unchanged | None:
    given = options["sink"]
    if given is None:
        return UNCHANGED
    return None if given == AS_SET else Sink(given)


def _rate(options: dict[str, Any]) -> Rate | Unchanged | None:
    rate, burst = options["rate"], options["burst"]
    if rate is None and burst is None:
        return UNCHANGED
    if rate == AS_SET and burst is None:
        return None
    if rate is None or burst is None or not rate.isdecimal():
        raise CommandError(f"Give --rate and --burst together, as whole numbers, or --rate {AS_SET} alone.")
    return Rate(per_second=int(rate), burst=burst)

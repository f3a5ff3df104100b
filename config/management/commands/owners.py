"""`manage.py owners`: what is where, migrated or not, which roles can log in, sessions, and what waits for delivery."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand

from config.inventory import Backlog, Login, Place, Server, as_json, take_inventory


class Command(BaseCommand):
    help = (
        "Show every owner's database: server, migrations, roles, sessions, backlog. Works, and says what is wrong, "
        "when a server is down. Exits with 1 if a database is unreachable, lacks migrations, or refuses one of its "
        "roles, or if the configured processes can open more sessions than a server accepts."
    )
    requires_system_checks: list[str] = []  # it has to work when the checks would not

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, **options: Any) -> None:
        places, servers = take_inventory()
        whole = as_json(places, servers)
        if options["json"]:
            self.stdout.write(json.dumps(whole, indent=1))
        else:
            for line in _lines(places, servers):
                self.stdout.write(line)
        if not whole["ok"]:
            sys.exit(1)


def _lines(places: list[Place], servers: list[Server]) -> Iterator[str]:
    for place in places:
        yield f"{place.owner:<12} alias {place.alias!r}, database {place.database!r} on {place.server}"
        if place.problem:
            yield f"  unreachable  {place.problem}"
        else:
            yield f"  migrations   {_migrations(place)}"
        for login in place.logins:
            yield f"  {_login(login)}"
        for backlog in place.backlog:
            yield f"  backlog      {_backlog(backlog)}"
    for server in servers:
        yield _server(server)


def _migrations(place: Place) -> str:
    if not place.unapplied:
        return "up to date"
    missing = "; ".join(f"{app}: {', '.join(names)}" for app, names in place.unapplied.items())
    return f"NOT up to date, run `manage.py migrate_owners {place.owner}`; missing {missing}"


def _login(login: Login) -> str:
    state = (
        f"CANNOT log in: {login.problem}" if login.problem else f"can log in, {login.sessions} of at most {login.most}"
    )
    return f"{'role':<12} {login.name:<22} {state}"


def _backlog(backlog: Backlog) -> str:
    waits = [
        f"{count} {state}"
        for state, count in (
            ("awaiting consumer", backlog.awaiting_consumer),
            ("due", backlog.due),
            ("later", backlog.later),
            ("leased", backlog.leased),
        )
        if count
    ]
    note = " (no consumer is bound)" if backlog.state == "awaiting_consumer" else ""
    oldest = f", oldest {backlog.oldest_seconds:.0f} s" if waits else ""
    return f"{backlog.destination}: {', '.join(waits) or 'nothing waits'}{oldest}{note}"


def _server(server: Server) -> str:
    if server.max_connections is None:
        return f"server {server.server}: could not be asked; the configured processes can open {server.configured}"
    advice = "" if server.ok else " (TOO MANY: raise max_connections, or lower WEB_PROCESSES or WORKER_PROCESSES)"
    return (
        f"server {server.server}: {server.sessions} of {server.max_connections} sessions in use; the configured "
        f"processes can open {server.configured}{advice}"
    )

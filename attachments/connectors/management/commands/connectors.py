"""`manage.py connectors create|rotate|revoke|list`"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from attachments.connectors.act import actor_of_command
from attachments.connectors.configure import create_connector
from attachments.connectors.errors import ConnectorsError
from attachments.connectors.models import Connector, ConnectorSecret, SecretState
from attachments.connectors.rotate import Issued, revoke, rotate
from attachments.connectors.sealing import name_of_key
from attachments.connectors.signature import Secret
from config.owners import owner_named

ALIAS = owner_named("attachments").read_alias
LONGEST_LINE = 200


class Command(BaseCommand):
    help = "Financial connectors: whose events they deliver, and the secrets with which providers sign them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        creating = actions.add_parser("create", help="A connector; its id and its first secret are printed once.")
        creating.add_argument("name", help="What operators call it.")
        creating.add_argument("--tenant", required=True, metavar="organization:ID|personal:ID")
        creating.add_argument("--provider", required=True, help="A short lower-case word, as in usage.")
        rotating = actions.add_parser("rotate", help="A new secret; the one before keeps CONNECTOR_SECRET_GRACE.")
        rotating.add_argument("connector", type=UUID)
        for parsing in (creating, rotating):
            parsing.add_argument(
                "--given", action="store_true", help="Read the secret that the provider issued from standard input."
            )
        revoking = actions.add_parser("revoke", help="Refuse a secret from now on.")
        revoking.add_argument("connector", type=UUID)
        which = revoking.add_mutually_exclusive_group(required=True)
        which.add_argument("secret", type=UUID, nargs="?", help="Its id.")
        which.add_argument("--all", action="store_true", help="Every one: nothing is accepted until a rotation.")
        listing = actions.add_parser("list", help="Every connector, or the secrets of one.")
        listing.add_argument("connector", type=UUID, nargs="?")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"create": self._create, "rotate": self._rotate, "revoke": self._revoke, "list": self._list}[action](
                options
            )
        except ConnectorsError as error:
            raise CommandError(str(error)) from error

    def _create(self, options: dict[str, Any]) -> None:
        kind, _, tenant = options["tenant"].partition(":")
        made = create_connector(
            name=options["name"],
            tenant_kind=kind,
            tenant_id=tenant,
            provider_code=options["provider"],
            actor=actor_of_command(),
            secret=_given(options),
        )
        self.stdout.write(f"connector {made.connector_id} created")
        self.stdout.write(f"address   /api/v1/connectors/{made.connector_id}/events")
        self._tell(made.issued, options)

    def _rotate(self, options: dict[str, Any]) -> None:
        done = rotate(connector_id=options["connector"], actor=actor_of_command(), secret=_given(options))
        self._tell(done.issued, options)
        if done.superseded_until is not None:
            self.stdout.write(f"the one before is accepted until {done.superseded_until:%FT%TZ}")

    def _revoke(self, options: dict[str, Any]) -> None:
        count = revoke(connector_id=options["connector"], secret_id=options["secret"], actor=actor_of_command())
        self.stdout.write(f"{count} revoked" if count else "revoked before; nothing changed")

    def _list(self, options: dict[str, Any]) -> None:
        if options["connector"] is None:
            for connector in Connector.objects.using(ALIAS).order_by("connector_id").iterator():
                self.stdout.write(
                    f"{connector.connector_id}  {connector.tenant_kind}:{connector.tenant_id}  "
                    f"{connector.provider_code}  {connector.name}"
                )
            return
        for line in _secrets(options["connector"]):
            self.stdout.write(line)

    def _tell(self, issued: Issued, options: dict[str, Any]) -> None:
        self.stdout.write(f"secret    {issued.secret_id} is current")
        if not options["given"]:
            self.stdout.write(f"          {issued.secret.text}")
            self.stdout.write("          Give it to the provider now: it is not shown again.")


def _given(options: dict[str, Any]) -> Secret | None:
    """From standard input, since arguments stand in the list of processes and in shells' histories."""
    return Secret.read(sys.stdin.readline(LONGEST_LINE).strip()) if options["given"] else None


def _secrets(connector_id: UUID) -> Iterable[str]:
    now, present = timezone.now(), name_of_key()
    for secret in ConnectorSecret.objects.using(ALIAS).filter(connector_id=connector_id).order_by("-secret_id"):
        says = secret.state
        if secret.state == SecretState.SUPERSEDED and secret.expires_at is not None:
            says += f" {'until' if now < secret.expires_at else 'and expired at'} {secret.expires_at:%FT%TZ}"
        key = "" if secret.sealed_with == present else "  sealed with an older key"
        yield f"{secret.secret_id}  issued {secret.issued_at:%FT%TZ}  {says}{key}"

"""`manage.py otlp_tokens rotate|list|revoke|check`"""

from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from metering.clusters.audit import Actor
from metering.clusters.errors import ClustersError
from metering.clusters.models import Mode
from metering.clusters.revoke import revoke
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import SecretStoreFailed, secret_store
from metering.clusters.tokens_of import disagreements, is_accepted, tokens_of


class Command(BaseCommand):
    help = "Tokens of clusters, as in the API of platform administrators, for whoever may run commands here."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        rotating = actions.add_parser(
            "rotate", help="A new PRIMARY token, printed once and handed to the secret store."
        )
        rotating.add_argument("cluster", type=int)
        rotating.add_argument("--mode", choices=Mode.values, help="Also for later tokens; default: as before.")
        listing = actions.add_parser("list", help="The tokens of a cluster, newest first.")
        listing.add_argument("cluster", type=int)
        revoking = actions.add_parser("revoke", help="Refuse a token from now on.")
        revoking.add_argument("cluster", type=int)
        revoking.add_argument("token", type=UUID, help="Its id.")
        actions.add_parser("check", help="Compare the secret store with the database; exit 1 on a difference.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"rotate": self._rotate, "list": self._list, "revoke": self._revoke, "check": self._check}[action](options)
        except (ClustersError, SecretStoreFailed, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error

    def _rotate(self, options: dict[str, Any]) -> None:
        done = rotate(
            cluster_id=options["cluster"],
            mode=Mode(options["mode"]) if options["mode"] else None,
            actor=Actor.of_command(),
            store=secret_store(),
        )
        for one in done.superseded:
            self.stderr.write(f"{one.token_id} is accepted until {one.expires_at:%FT%TZ}")
        self.stderr.write(f"{done.token_id} is primary, mode {done.mode}. Its token, shown only here:")
        self.stdout.write(done.plaintext.text)

    def _list(self, options: dict[str, Any]) -> None:
        found = tokens_of(cluster_id=options["cluster"])
        for token in found.tokens:
            ends = f" until {token.expires_at:%FT%TZ}" if token.expires_at and token.revoked_at is None else ""
            accepted = "accepted" if is_accepted(token, now=timezone.now()) else "refused"
            self.stdout.write(
                f"{token.token_id}  {token.mode}  {token.state}  {accepted}{ends}  issued {token.issued_at:%FT%TZ}"
            )
        if found.truncated:
            self.stdout.write("(older ones are left out)")

    def _revoke(self, options: dict[str, Any]) -> None:
        revoked = revoke(cluster_id=options["cluster"], token_id=options["token"], actor=Actor.of_command())
        self.stdout.write("revoked" if revoked else "it was revoked before; nothing changed")

    def _check(self, options: dict[str, Any]) -> None:
        found = list(disagreements(store=secret_store(), now=timezone.now()))
        for one in found:
            self.stdout.write(f"cluster {one.cluster_id}: {one.problem}")
        self.stdout.write(f"{len(found)} disagreements")
        if found:
            raise SystemExit(1)

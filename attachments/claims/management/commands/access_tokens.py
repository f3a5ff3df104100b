"""`manage.py access_tokens mint|revoke|list`"""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from attachments.claims.errors import ClaimsError
from attachments.claims.members import READ_ALIAS, Tenant, account_of
from attachments.claims.models import AccessToken
from attachments.claims.models.access_token import LONGEST_LIFE
from attachments.claims.tokens import mint, revoke

DAYS = 30


class Command(BaseCommand):
    help = "Access tokens of members, with which programs call the API of claims."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        minting = actions.add_parser("mint", help="A token of an account in a tenant, printed once.")
        minting.add_argument("name", help="The login name.")
        minting.add_argument("--tenant", required=True, help="As kind:id, such as organization:acme.")
        minting.add_argument("--days", type=int, default=DAYS, help=f"How long it is accepted; default {DAYS}.")
        revoking = actions.add_parser("revoke", help="Refuse a token from now on.")
        revoking.add_argument("token", type=UUID, help="Its id.")
        actions.add_parser("list", help="Tokens that are accepted now.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"mint": self._mint, "revoke": self._revoke, "list": self._list}[action](options)
        except ClaimsError as error:
            raise CommandError(str(error)) from error

    def _mint(self, options: dict[str, Any]) -> None:
        if not 1 <= options["days"] <= LONGEST_LIFE.days:
            raise CommandError(f"--days is 1 to {LONGEST_LIFE.days}.")
        minted = mint(
            user_id=account_of(options["name"]).pk,
            tenant=Tenant.parse(options["tenant"]),
            life=timedelta(days=options["days"]),
        )
        self.stderr.write(f"{minted.token_id} is accepted until {minted.expires_at:%FT%TZ}. Shown only here:")
        self.stdout.write(minted.text)

    def _revoke(self, options: dict[str, Any]) -> None:
        self.stdout.write("revoked" if revoke(token_id=options["token"]) else "it was revoked before; nothing changed")

    def _list(self, options: dict[str, Any]) -> None:
        living = AccessToken.objects.using(READ_ALIAS).select_related("membership")
        for token in living.filter(revoked_at=None, expires_at__gt=timezone.now(), membership__ended_at=None).order_by(
            "token_id"
        ):
            whose = token.membership
            self.stdout.write(
                f"{token.token_id}  account {whose.user_id}  {whose.tenant_kind}:{whose.tenant_id}"
                f"  until {token.expires_at:%FT%TZ}"
            )

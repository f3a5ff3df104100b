"""`manage.py administrator grant|withdraw|mint|end|list`"""

import re
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.utils import timezone

from config.owners import owner_named
from metering.clusters.administrators import CODENAME, end, grant, grantees, mint, withdraw
from metering.clusters.audit import Actor
from metering.clusters.errors import ClustersError
from metering.clusters.models import AdministratorToken
from metering.clusters.models.administrator_token import LONGEST_LIFE

DAYS = 30
NAME = re.compile(r"[\w.@+-]{1,150}")


class Command(BaseCommand):
    help = (
        f"Platform administrators: accounts with the permission {CODENAME}, and the tokens with which they call the "
        "API. An operator's login has neither; to set an operator's password again takes the permission away."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for name, words in (
            ("grant", "Let an account manage tokens; one that is not there is made without a password."),
            ("withdraw", "Take that away, and end the account's tokens."),
            ("mint", "A token for such an account, printed once."),
        ):
            parsing = actions.add_parser(name, help=words)
            parsing.add_argument("name")
        parsing.add_argument("--days", type=int, default=DAYS, help=f"How long it is accepted; default {DAYS}.")
        ending = actions.add_parser("end", help="Refuse one administrator's token from now on.")
        ending.add_argument("token", type=UUID, help="Its id.")
        actions.add_parser("list", help="Who may manage tokens, and their tokens that are accepted.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        steps = {
            "grant": self._grant,
            "withdraw": self._withdraw,
            "mint": self._mint,
            "end": self._end,
            "list": self._list,
        }
        try:
            steps[action](options)
        except ClustersError as error:
            raise CommandError(str(error)) from error
        except DatabaseError as error:
            reason = str(error).partition("\n")[0]
            raise CommandError(f"A database refused: {reason}. Run `manage.py migrate_owners` first.") from error

    def _grant(self, options: dict[str, Any]) -> None:
        if not NAME.fullmatch(options["name"]):
            raise CommandError(f"{options['name']!r} is no login name. Use up to 150 letters, digits and @ . + - _")
        new = grant(name=options["name"], actor=Actor.of_command())
        self.stdout.write(f"{options['name']} may {'now' if new else 'already'} manage tokens of clusters")

    def _withdraw(self, options: dict[str, Any]) -> None:
        withdraw(name=options["name"], actor=Actor.of_command())
        self.stdout.write(f"{options['name']} may manage no tokens any more")

    def _mint(self, options: dict[str, Any]) -> None:
        if not 1 <= options["days"] <= LONGEST_LIFE.days:
            raise CommandError(f"--days is 1 to {LONGEST_LIFE.days}.")
        minted = mint(name=options["name"], life=timedelta(days=options["days"]), actor=Actor.of_command())
        self.stderr.write(f"{minted.token_id} is accepted until {minted.expires_at:%FT%TZ}. Shown only here:")
        self.stdout.write(minted.plaintext.text)

    def _end(self, options: dict[str, Any]) -> None:
        ended = end(token_id=options["token"], actor=Actor.of_command())
        self.stdout.write("ended" if ended else "it was ended before; nothing changed")

    def _list(self, options: dict[str, Any]) -> None:
        alias = owner_named("metering").read_alias
        living = AdministratorToken.objects.using(alias).filter(revoked_at=None, expires_at__gt=timezone.now())
        for account in grantees():
            self.stdout.write(account.name)
            for token in living.filter(account_id=account.account_id).order_by("token_id"):
                self.stdout.write(f"  {token.token_id} until {token.expires_at:%FT%TZ}")

"""`manage.py members add|end|list`"""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from attachments.claims.errors import ClaimsError
from attachments.claims.members import CORE_SESSION, READ_ALIAS, Tenant, account_of, join, leave
from attachments.claims.models import Membership, MembershipRole


class Command(BaseCommand):
    help = "Which accounts belong to which tenants, for the API of claims."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for name, words in (
            ("add", "Let an account belong to a tenant; again with another role changes the role."),
            ("end", "End that; the account's tokens of this tenant are refused from now on."),
        ):
            parsing = actions.add_parser(name, help=words)
            parsing.add_argument("name", help="The login name.")
            parsing.add_argument("--tenant", required=True, help="As kind:id, such as organization:acme.")
            if name == "add":
                parsing.add_argument("--role", choices=MembershipRole.values, default=MembershipRole.MEMBER.value)
        actions.add_parser("list", help="Everybody who belongs to a tenant now.")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"add": self._add, "end": self._end, "list": self._list}[action](options)
        except ClaimsError as error:
            raise CommandError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        account, tenant = account_of(options["name"]), Tenant.parse(options["tenant"])
        membership = join(user_id=account.pk, tenant=tenant, role=MembershipRole(options["role"]))
        self.stdout.write(f"{options['name']} belongs to {options['tenant']} as {membership.role}")

    def _end(self, options: dict[str, Any]) -> None:
        account = User.objects.using(CORE_SESSION).filter(username=options["name"]).first()
        if account is None:
            raise CommandError(f"There is no account {options['name']!r}.")
        leave(user_id=account.pk, tenant=Tenant.parse(options["tenant"]))
        self.stdout.write(f"{options['name']} belongs to {options['tenant']} no more")

    def _list(self, options: dict[str, Any]) -> None:
        rows = list(
            Membership.objects.using(READ_ALIAS).filter(ended_at=None).order_by("tenant_kind", "tenant_id", "user_id")
        )
        accounts = User.objects.using(CORE_SESSION).filter(pk__in={row.user_id for row in rows})
        names = dict(accounts.values_list("pk", "username"))
        for row in rows:
            self.stdout.write(
                f"{row.tenant_kind}:{row.tenant_id}  {names.get(row.user_id, f'account {row.user_id}')}  {row.role}"
            )

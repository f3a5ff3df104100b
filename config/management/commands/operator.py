"""`manage.py operator NAME`: a login that can look at everything and change nothing."""

import getpass
import os
import re
import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.password_validation import validate_password
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, transaction

from config.owners import OWNERS
from config.password_hasher import KeptPassword
from config.readonly_admin import SECTIONS

GROUP = "operators"
"""Holds every view permission and no other."""
NAME = re.compile(r"[\w.@+-]{1,150}")
LONGEST_PASSWORD = 4096


class Command(BaseCommand):
    help = (
        "Create an operator login, or set its password. It may view every page of the admin and change nothing. The "
        "password is asked for, or read from standard input or OPERATOR_PASSWORD. Running it again changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--password-stdin", action="store_true", help="Read the password from standard input.")

    def handle(self, *args: Any, name: str, password_stdin: bool, **options: Any) -> None:
        if not NAME.fullmatch(name):
            raise CommandError(f"{name!r} is no login name. Use up to 150 letters, digits and @ . + - _")
        alias = next(owner.alias for owner in OWNERS if owner.has_sessions)
        try:
            with transaction.atomic(using=alias):
                made = _set(name, _password(name, stdin=password_stdin), alias=alias)
        except DatabaseError as error:
            reason = str(error).partition("\n")[0]
            raise CommandError(
                f"The database of core refused: {reason}. Run `manage.py migrate_owners` first."
            ) from error
        if options["verbosity"]:
            self.stdout.write(
                f"{name} {'was created and ' if made else ''}can log in, look at everything and change nothing."
            )


def _password(name: str, *, stdin: bool) -> str:
    if stdin:
        password = sys.stdin.readline(LONGEST_PASSWORD).rstrip("\r\n")
    elif os.environ.get("OPERATOR_PASSWORD"):
        password = os.environ["OPERATOR_PASSWORD"]
    elif sys.stdin.isatty():
        password = getpass.getpass(f"Password for {name}: ")
        if getpass.getpass("Again: ") != password:
            raise CommandError("The two passwords differ. Nothing was changed.")
    else:
        raise CommandError("There is no terminal to ask for a password. Use --password-stdin or OPERATOR_PASSWORD.")
    try:
        validate_password(password, User(username=name))
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    return password


def _set(name: str, password: str, *, alias: str) -> bool:
    """Make user and group what they should be; whether the user is new."""
    user = User.objects.using(alias).select_for_update().filter(username=name).first()
    made = user is None
    user = user or User(username=name)
    user.is_active = user.is_staff = True
    user.is_superuser = False
    if not user.check_password(password) or KeptPassword().is_outdated(user.password):
        user.set_password(password)
    user.save(using=alias)
    group, _ = Group.objects.using(alias).get_or_create(name=GROUP)
    group.permissions.set(_may_view(alias))
    user.groups.set([group])
    user.user_permissions.clear()
    return made


def _may_view(alias: str) -> list[Permission]:
    """The view permission of every page there is; those of tables in other databases no migration makes."""
    found = []
    for model in {model for section in SECTIONS.values() for model in section._registry}:
        kind = ContentType.objects.db_manager(alias).get_for_model(model, for_concrete_model=False)
        permission, _ = Permission.objects.using(alias).get_or_create(
            content_type=kind,
            codename=get_permission_codename("view", model._meta),
            defaults={"name": f"Can view {model._meta.verbose_name}"},
        )
        found.append(permission)
    return found

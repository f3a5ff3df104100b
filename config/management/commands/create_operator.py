"""`manage.py create_operator NAME`: a login for the admin, which shows everything and changes nothing."""

import getpass
import os
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from config.owners import OWNERS


class Command(BaseCommand):
    help = "Create an operator login or set its password, read from OPERATOR_PASSWORD or asked for. Idempotent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        password = os.environ.get("OPERATOR_PASSWORD") or getpass.getpass(f"Password for {name}: ")
        try:
            validate_password(password)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        alias = next(owner.alias for owner in OWNERS if owner.has_sessions)
        user = User.objects.using(alias).filter(username=name).first() or User(username=name)
        user.is_staff = user.is_active = True
        if not user.check_password(password):
            user.set_password(password)
        user.save(using=alias)
        if options["verbosity"]:
            self.stdout.write(f"{name} can log in.")

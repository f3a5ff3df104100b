"""`manage.py migrate_owners`: bring every owner's database up to date, under its schema role. Idempotent."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.migrate import migrate
from config.owners import OWNERS, Owner, owner_named
from config.provision import grant_tables, provision


class Command(BaseCommand):
    help = "Create databases and roles where allowed, migrate, grant, and register the delivery set. Idempotent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("owners", nargs="*", metavar="owner", help="Names of owners; all of them by default.")
        parser.add_argument("--no-delivery-set", action="store_true", help="Do not register and activate it.")

    def handle(self, *args: Any, owners: list[str], **options: Any) -> None:
        if unknown := set(owners) - {owner.name for owner in OWNERS}:
            names = ", ".join(owner.name for owner in OWNERS)
            raise CommandError(f"There is no owner {', '.join(sorted(unknown))}. Owners: {names}.")
        for owner in [owner_named(name) for name in owners] or OWNERS:
            self._migrate(owner, delivery_set=not options["no_delivery_set"], verbosity=options["verbosity"])

    def _migrate(self, owner: Owner, *, delivery_set: bool, verbosity: int) -> None:
        provisioned = provision(owner)
        migrate(owner)
        grant_tables(owner)
        if owner.produces and delivery_set:
            from outbox.register import activate, register_first_release

            definition = register_first_release(using=owner.schema_alias)
            activate(definition.delivery_set_version, using=owner.schema_alias)
        if verbosity:
            note = "" if provisioned else " (roles and database were there already)"
            self.stdout.write(f"{owner.name}: database {owner.alias!r} is up to date{note}")

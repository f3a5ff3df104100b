"""`manage.py delivery_sets register|activate|show`: the registry of every producer's database (O6)."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error

from config.owners import Owner, owner_named, producers
from outbox import register
from outbox.contracts.delivery_set import DefinitionRefused, DeliverySetDefinition
from outbox.contracts.first_release import first_release
from outbox.models import DeliverySetVersion

REFUSALS = (register.DeliverySetConflict, register.DeliverySetUnknown, register.DeliverySetRetired)
Step = Callable[[Owner], dict[str, Any]]


class Command(BaseCommand):
    help = (
        "Register, activate or show delivery-set definitions in the databases of all producers, or of one. Idempotent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        modes = parser.add_subparsers(dest="mode", required=True)
        add = modes.add_parser("register", help="Insert a definition, or compare it with the registered one.")
        add.add_argument(
            "--file", help="Canonical JSON of the definition, - for standard input; default: the first release."
        )
        use = modes.add_parser("activate", help="New events freeze this version; the active one before it retires.")
        use.add_argument("version")
        show = modes.add_parser("show", help="List the versions, or the members of one.")
        show.add_argument("version", nargs="?")
        for mode in (add, use, show):
            mode.add_argument("--owner", choices=[owner.name for owner in producers()], help="Only this producer.")
            mode.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *args: Any, mode: str, owner: str | None, **options: Any) -> None:
        owners = (owner_named(owner),) if owner else producers()
        step = {"register": self._register, "activate": self._activate, "show": self._show}[mode](options)
        results = {one.name: _tried(step, one) for one in owners}
        if options["json"]:
            self.stdout.write(json.dumps(results, indent=1))
        else:
            for name, result in results.items():
                self.stdout.write(f"{name}: {result.get('error') or result['says']}")
        if any("error" in result for result in results.values()):
            sys.exit(1)

    def _register(self, options: dict[str, Any]) -> Step:
        definition = _definition(options["file"])

        def step(owner: Owner) -> dict[str, Any]:
            new = register.register(definition, source_release=settings.RELEASE, using=owner.schema_alias)
            version, digest = definition.delivery_set_version, definition.delivery_set_definition_digest
            says = f"{version} {'registered' if new else 'was registered with the same content'}, digest {digest}"
            return {"version": version, "digest": digest, "new": new, "says": says}

        return step

    def _activate(self, options: dict[str, Any]) -> Step:
        version = options["version"]

        def step(owner: Owner) -> dict[str, Any]:
            changed = register.activate(version, using=owner.schema_alias)
            return {"version": version, "changed": changed, "says": f"{version} {'is' if changed else 'was'} active"}

        return step

    def _show(self, options: dict[str, Any]) -> Step:
        return lambda owner: _one(owner, options["version"]) if options["version"] else _all(owner)


def _tried(step: Step, owner: Owner) -> dict[str, Any]:
    try:
        return step(owner)
    except REFUSALS as error:
        return {"error": str(error)}
    except Error as error:
        return {"error": f"the database refused or did not answer: {str(error).splitlines()[0]}"}


def _definition(file: str | None) -> DeliverySetDefinition:
    if file is None:
        return first_release()
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return DeliverySetDefinition.parse(data.rstrip(b"\n"))
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}.") from error
    except DefinitionRefused as error:
        raise CommandError(f"{file}: {error} Nothing was registered.") from error


def _all(owner: Owner) -> dict[str, Any]:
    rows = DeliverySetVersion.objects.using(owner.read_alias).order_by("registered_at", "delivery_set_version")
    versions = [
        {
            "version": row.delivery_set_version,
            "status": row.status,
            "digest": row.delivery_set_definition_digest,
            "registered_at": row.registered_at.isoformat(),
            "activated_at": row.activated_at and row.activated_at.isoformat(),
            "source_release": row.source_release,
        }
        for row in rows
    ]
    says = ", ".join(f"{v['version']} {v['status']} ({str(v['digest'])[:12]}…)" for v in versions)
    return {"versions": versions, "says": says or "no delivery set is registered"}


def _one(owner: Owner, version: str) -> dict[str, Any]:
    row = DeliverySetVersion.objects.using(owner.read_alias).filter(delivery_set_version=version).first()
    if row is None:
        raise register.DeliverySetUnknown(f"Delivery set {version!r} is not registered in {owner.alias!r}.")
    definition = DeliverySetDefinition.parse(row.definition.encode())
    lines = [
        f"  {member.event_type} → {member.destination} ({member.consumer_name}), {member.expected_receipt_type}"
        f"@{member.expected_receipt_schema_version}{'' if member.mandatory else ', optional'}"
        for member in definition.members
    ]
    head = f"{version} {row.status}, digest {row.delivery_set_definition_digest}, {len(lines)} members"
    return {"status": row.status, "definition": definition.wire(), "says": "\n".join([head, *lines])}

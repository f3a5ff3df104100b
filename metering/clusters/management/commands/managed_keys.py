"""`manage.py managed_keys add|import|show`"""

import csv
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from metering.clusters.audit import Actor
from metering.clusters.errors import ClustersError
from metering.clusters.managed_keys import Key, known_key, learn_keys

REQUIRED = ("manager_key_id", "organization_id")
OPTIONAL = "label"


class Command(BaseCommand):
    help = "Managed keys of the LLM gateway, with the organisation that pays for each. That never changes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        adding = actions.add_parser("add", help="Add one key.")
        adding.add_argument("key", help="Its id, decimal digits.")
        adding.add_argument("organization")
        adding.add_argument("--label", default="")
        importing = actions.add_parser("import", help="Add the keys of a CSV file, all or none; known ones stay.")
        importing.add_argument(
            "file", type=Path, help="With a heading: manager_key_id, organization_id, perhaps label."
        )
        showing = actions.add_parser("show", help="Whose key it is; exit 1 if it is not known.")
        showing.add_argument("key")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            {"add": self._add, "import": self._import, "show": self._show}[action](options)
        except ClustersError as error:
            raise CommandError(str(error)) from error

    def _add(self, options: dict[str, Any]) -> None:
        key = Key(options["key"], options["organization"], options["label"])
        learnt = learn_keys(keys=[key], actor=Actor.of_command())
        self.stdout.write(f"key {key.manager_key_id} {'added' if learnt.new else 'was known already'}")

    def _import(self, options: dict[str, Any]) -> None:
        learnt = learn_keys(keys=_keys(options["file"]), actor=Actor.of_command())
        self.stdout.write(f"{learnt.given} keys read, {learnt.new} of them new")

    def _show(self, options: dict[str, Any]) -> None:
        key = known_key(options["key"])
        if key is None:
            self.stdout.write(f"key {options['key']} is not known")
            raise SystemExit(1)
        self.stdout.write(f"key {key.manager_key_id}  organization {key.organization_id}  {key.label}".rstrip())


def _keys(path: Path) -> Iterator[Key]:
    """The rows of the file, one at a time. Raises `CommandError` that names the line."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, strict=True)
            heading = rows.fieldnames or []
            if not set(REQUIRED) <= set(heading) or set(heading) - {*REQUIRED, OPTIONAL}:
                raise CommandError(
                    f"{path}: the heading is manager_key_id, organization_id, and label if there are any."
                )
            for row in rows:
                if None in row or None in row.values():
                    raise CommandError(f"{path}, line {rows.line_num}: not as many fields as the heading.")
                yield Key(row[REQUIRED[0]].strip(), row[REQUIRED[1]].strip(), (row.get(OPTIONAL) or "").strip())
    except OSError as error:
        raise CommandError(f"Cannot read {path}: {error.strerror}.") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is no CSV file in UTF-8: {error}.") from error

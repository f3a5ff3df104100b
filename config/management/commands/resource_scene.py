"""`manage.py resource_scene`: connectors and attachments under quota, over HTTP; a second time nothing counts."""

import io
import json
from argparse import ArgumentParser
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from billing.commercial.fullness import fullness
from billing.commercial.models import EntitlementPeriod
from config.replay.attachment_scene import file_receipts
from config.replay.calls import NoAnswer
from config.replay.connector_scene import deliver_events
from config.replay.resource_lines import resource_lines, surprises

DEMO = Path(settings.BASE_DIR) / "deploy" / "demo"
TENANT = "org:kestrel-audit"
"""The organisation of the scene, on the plan `pilot`."""


class Command(BaseCommand):
    help = "Deliver connector events and file receipts at a running web process, until quota refuses."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--url", required=True, help="Of the web process, such as http://127.0.0.1:8000")
        parser.add_argument("--json", action="store_true", help="One JSON object on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        quiet = io.StringIO()
        call_command("commercial", "import-plans", str(DEMO / "plans.json"), stdout=quiet)
        call_command("commercial", "subscribe", str(DEMO / "subscriptions.json"), stdout=quiet)
        month = datetime.now(UTC).strftime("%Y-%m")
        try:
            played: dict[str, Any] = {
                "connector": deliver_events(url=options["url"], tenant_id=TENANT, month=month),
                "attachments": file_receipts(url=options["url"], tenant_id=TENANT, month=month),
            }
        except NoAnswer as error:
            raise CommandError(f"The scene could not be played: {error}") from error
        played["quota"] = _quota()
        played["surprises"] = surprises(played)
        self.stdout.write(json.dumps(played) if options["json"] else "\n".join(resource_lines(played)))


def _quota() -> dict[str, dict[str, int]]:
    """Used, held and free of the scene's organisation, now, by entitlement."""
    now = datetime.now(UTC)
    rows = EntitlementPeriod.objects.using("billing.read").filter(
        tenant_id=f"organization:{TENANT}", starts_at__lte=now, ends_at__gt=now
    )
    names = {period.pk: period.entitlement_id.rpartition("/")[2] for period in rows}
    return {
        names[period]: {"used": one.used, "held": one.held, "free": one.free, "limit": one.hard_limit}
        for period, one in sorted(fullness(list(names), alias="billing.read").items())
    }

"""`manage.py replay_telemetry`: send a trace to the receiver as billing events; sending it again changes nothing."""

import hashlib
import io
import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from config.replay.send import NotTaken, Sender
from config.replay.settled import totals, unfinished
from config.replay.telemetry_events import GATEWAY_CLUSTER, OWN_CLUSTER, batches
from metering.clusters.audit import Actor
from metering.clusters.models import Mode, Sink
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import Slot, secret_store
from upstream.admission.trace import NotATrace, TraceRow, read_trace

DEMO = Path(settings.BASE_DIR) / "deploy" / "demo"
CLUSTERS = ((GATEWAY_CLUSTER, "demo-gateway", Mode.GATEWAY), (OWN_CLUSTER, "demo-robots", Mode.PER_CLUSTER))
POLL_SECONDS = 0.25


class Command(BaseCommand):
    help = "Send a CSV trace (TIMESTAMP,ContextTokens,GeneratedTokens) to the receiver, and await its consumption."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--trace", type=Path, default=DEMO / "trace_excerpt.csv")
        parser.add_argument("--limit", type=int, help="Rows to send; all by default.")
        parser.add_argument("--batch", type=int, default=500, help="Rows sent together, 1 to 5000.")
        parser.add_argument("--url", default=f"http://{settings.OTLP_HOST}:{settings.OTLP_PORT}")
        parser.add_argument("--patience", type=float, default=120.0, help="Seconds to wait without any progress.")
        parser.add_argument("--progress", action="store_true", help="A progress bar on standard error.")
        parser.add_argument("--json", action="store_true", help="One JSON object on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        trace, limit, batch = options["trace"], options["limit"], options["batch"]
        if not 1 <= batch <= 5000 or not 1 <= (limit or 1) <= sys.maxsize:  # noqa: PLR2004  # as the help says
            raise CommandError("Write --batch from 1 to 5000 and --limit from 1.")
        if not trace.is_file():
            raise CommandError(f"{trace} is no file. Give a CSV with TIMESTAMP,ContextTokens,GeneratedTokens.")
        tokens = _prepare()
        with trace.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        began = time.monotonic()
        try:
            with (
                Sender(options["url"], tokens, options["patience"]) as sender,
                tqdm(desc="send", disable=not options["progress"], unit=" events", file=sys.stderr) as bar,
            ):
                rows = islice(read_trace(trace), limit)
                while lines := list(islice(rows, batch)):
                    for one in batches([line for line in lines if isinstance(line, TraceRow)], trace=digest):
                        sender.send(one)
                        bar.update(one.records)
        except (NotATrace, NotTaken) as error:
            raise CommandError(str(error)) from error
        seconds = time.monotonic() - began
        _await_consumption(patience=options["patience"])
        done = {
            "sent": sender.sent,
            "rejected": sender.rejected,
            "resent": sender.resent,
            "eventsPerSecond": round(sender.sent / seconds, 1) if sender.sent else 0.0,
            **totals(),
        }
        self.stdout.write(json.dumps(done) if options["json"] else "\n".join(_said(done)))


def _prepare() -> dict[int, str]:
    """Accounts, prices, keys, clusters; the present token of each cluster, from the secret store."""
    quiet = io.StringIO()
    call_command("price_books", "import", str(DEMO / "price_book.json"), stdout=quiet)
    call_command("ledger", "open", str(DEMO / "telemetry_accounts.json"), stdout=quiet)
    call_command("managed_keys", "import", str(DEMO / "managed_keys.csv"), stdout=quiet)
    store, tokens = secret_store(), {}
    for cluster, name, mode in CLUSTERS:
        call_command(
            "clusters", "create", str(cluster), name=name, mode=mode.value, sink=Sink.TIMESCALE.value, stdout=quiet
        )
        present = store.read(cluster_id=cluster, slot=Slot.PRIMARY)
        if present is None:
            present = rotate(cluster_id=cluster, actor=Actor.of_command(), store=store).plaintext.text
        tokens[cluster] = present
    return tokens


def _await_consumption(*, patience: float) -> None:
    from metering.consumption.tasks import sweep

    sweep.delay()
    moved, before = time.monotonic(), unfinished()
    while not before.is_nothing:
        time.sleep(POLL_SECONDS)
        now = unfinished()
        if now != before:
            moved, before = time.monotonic(), now
        elif time.monotonic() - moved > patience:
            raise CommandError(
                f"{now.windows} windows and {now.charges} charges stand still for {patience:.0f} s. Is a worker "
                f"running on the queue owner.telemetry?"
            )


def _said(done: dict[str, Any]) -> Iterator[str]:
    yield f"{done['sent']} events sent, {done['rejected']} rejected, {done['resent']} requests sent again"
    yield f"{done['stored']} stored, {done['duplicates']} duplicates, {done['conflicts']} conflicts"
    for reason, count in done["dropped"].items():
        yield f"{count} dropped for {reason}"
    consumed = done["consumption"]
    yield (
        f"{consumed['windows']} windows, {consumed['inputTokens']} input and {consumed['outputTokens']} output tokens, "
        f"{consumed['posted']} charges posted, {consumed['chargedPicos']} pico-units"
    )

"""`manage.py replay_trace`: admit one run per row of a trace; running it again changes nothing."""

import io
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from upstream.admission.contracts import MAX_BATCH
from upstream.admission.replay import Payer, Replayed, count_lines, replay
from upstream.admission.trace import NotATrace

DEMO = Path(settings.BASE_DIR) / "deploy" / "demo"
SHOWN = 20
"""Skipped rows that are named one by one; the rest are counted."""


class Command(BaseCommand):
    help = "Replay a CSV trace (TIMESTAMP,ContextTokens,GeneratedTokens) as admissions of deterministic organisations."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--trace", type=Path, default=DEMO / "trace_excerpt.csv")
        parser.add_argument("--limit", type=int, help="Rows to replay; all by default.")
        parser.add_argument("--batch", type=int, default=100, help=f"Runs admitted together, 1 to {MAX_BATCH}.")
        parser.add_argument("--progress", action="store_true", help="A progress bar on standard error.")
        parser.add_argument("--json", action="store_true", help="One JSON object on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        trace, limit, batch = options["trace"], options["limit"], options["batch"]
        if not 1 <= batch <= MAX_BATCH or not 1 <= (limit or 1) <= sys.maxsize:
            raise CommandError(f"Write --batch from 1 to {MAX_BATCH} and --limit from 1.")
        if not trace.is_file():
            raise CommandError(f"{trace} is no file. Give a CSV with TIMESTAMP,ContextTokens,GeneratedTokens.")
        call_command("price_books", "import", str(DEMO / "price_book.json"), stdout=io.StringIO())
        call_command("ledger", "open", str(DEMO / "accounts.json"), stdout=io.StringIO())
        started = time.monotonic()
        try:
            lines = count_lines(trace)
            total = min(lines, limit) if limit else lines
            with tqdm(total=total, disable=not options["progress"], unit=" runs", file=sys.stderr) as bar:
                done = replay(trace, payers=_payers(), limit=limit, batch=batch, progress=bar.update)
        except OSError as error:
            raise CommandError(f"Cannot read {trace}: {error.strerror}.") from error
        except NotATrace as error:
            raise CommandError(str(error)) from error
        self._report(trace, done, seconds=time.monotonic() - started, as_json=options["json"])
        if done.not_admitted:
            raise SystemExit(1)

    def _report(self, trace: Path, done: Replayed, *, seconds: float, as_json: bool) -> None:
        if as_json:
            document = {
                "trace": trace.name,
                "traceSha256": done.trace_sha256,
                "rows": done.rows,
                "runs": done.runs,
                "newRuns": done.new_runs,
                "events": done.events,
                "deliveries": done.deliveries,
                "skipped": [{"line": bad.line, "reason": bad.reason} for bad in done.skipped],
                "notAdmitted": dict(done.not_admitted),
                "seconds": round(seconds, 3),
                "runsPerSecond": round(done.rows / seconds, 1),
                "examples": done.examples,
            }
            self.stdout.write(orjson.dumps(document).decode())
            return
        for bad in done.skipped[:SHOWN]:
            self.stdout.write(f"{trace.name}:{bad.line}: skipped, {bad.reason}")
        for reason, count in sorted(done.not_admitted.items()):
            self.stdout.write(f"{count} not admitted: {reason}")
        self.stdout.write(
            f"{done.rows} rows, {len(done.skipped)} skipped; {done.runs} runs ({done.new_runs} new), "
            f"{done.events} events, {done.deliveries} deliveries; {done.rows / seconds:.0f} admissions/s"
        )
        for example in done.examples:
            self.stdout.write("  ".join(f"{key}={value}" for key, value in example.items()))


def _payers() -> list[Payer]:
    accounts = orjson.loads((DEMO / "accounts.json").read_bytes())
    return [Payer(item["tenantKind"], item["tenantId"], item["billingAccountId"]) for item in accounts]

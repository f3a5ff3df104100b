"""The demo: replay a trace as admissions, let the workers deliver, prove the result, say it in one summary."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.replay.resource_lines import resource_lines
from config.supervise.prepare import Steps
from config.supervise.refused import Refused

SHOWN = 10
"""Skipped rows that are named one by one."""
PICOS = 10**12
MOST_ROWS = 10**9
"""A trace of more rows than that is not for a demo."""


class DemoFailed(RuntimeError):
    """A command of the demo did not say what it should; the text names it."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What to replay (None: the excerpt that comes with the project; all of it), and whether to end afterwards."""

    trace: Path | None
    limit: int | None
    leave: bool

    @classmethod
    def asked(cls, *, trace: Path | None, limit: str | None, leave: bool) -> "Demo":
        """What the command line asks for. Raises `Refused` for a trace that is no file or a limit that is no count."""
        if trace is not None and not trace.is_file():
            raise Refused(f"TRACE={trace} is no file. Name a CSV with TIMESTAMP,ContextTokens,GeneratedTokens.")
        if limit is not None and not (limit.isascii() and limit.isdigit() and 0 < int(limit) <= MOST_ROWS):
            raise Refused(f"LIMIT={limit} is no number of rows. Write 1 to {MOST_ROWS}, or leave it out.")
        return cls(trace=trace, limit=int(limit) if limit is not None else None, leave=leave)

    def run(self, *, steps: Steps, look: Callable[[], None], url: str, login: str) -> bool:
        """Replay, drain, verify, and print the summary; whether everything is admitted, delivered and proven."""
        began = datetime.now(UTC)
        chosen = [*(["--trace", str(self.trace.resolve())] if self.trace else [])]
        chosen += ["--limit", str(self.limit)] if self.limit is not None else []
        replay = steps.show("replay_trace", "--progress", "--json", *chosen, look=look, may_fail=True)
        replayed = said("replay_trace", replay)
        since = ["--since", began.isoformat()]
        drained = said("await_drained", steps.show("await_drained", "--progress", *since, look=look))
        telemetry = said("replay_telemetry", steps.show("replay_telemetry", "--progress", "--json", *chosen, look=look))
        scene = said("resource_scene", steps.show("resource_scene", "--url", url, "--json", look=look))
        verified = said("verify", steps.show("verify", "--json", look=look, may_fail=True))
        figures = figures_of(replayed, drained, telemetry, scene, verified)
        sys.stdout.write(summary(figures, verified, browser=f"{url}/admin/   login {login}"))
        sys.stdout.write(f"DEMO {json.dumps({**figures, 'url': url})}\n")
        sys.stdout.flush()
        return bool(figures["ok"])


def said(command: str, output: str) -> dict[str, Any]:
    """The JSON object on the last line that a command printed. Raises `DemoFailed` if there is none."""
    try:
        found = json.loads(output.strip().rpartition("\n")[2])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DemoFailed(f"`manage.py {command}` printed no JSON:\n{output[-2000:]}")
    return found


def figures_of(
    replayed: dict[str, Any],
    drained: dict[str, Any],
    telemetry: dict[str, Any],
    scene: dict[str, Any],
    verified: dict[str, Any],
) -> dict[str, Any]:
    """What the summary says, for scripts: totals of all databases, and the pace of this replay."""
    totals: dict[str, int] = verified["totals"]
    unfinished = totals["quarantined"] + totals["pending"] + totals["leased"] - totals["awaiting_consumer"]
    went_wrong = bool(replayed["notAdmitted"] or telemetry["rejected"] or scene["surprises"])
    return {
        "ok": bool(verified["ok"]) and unfinished == 0 and not went_wrong,
        "verified": bool(verified["ok"]),
        "trace": replayed["trace"],
        "rows": replayed["rows"],
        "skipped": replayed["skipped"],
        "notAdmitted": replayed["notAdmitted"],
        "newRuns": replayed["newRuns"],
        "admissionsPerSecond": replayed["runsPerSecond"],
        **{name: totals[name] for name in ("runs", "events", "published", "deliveries", "acknowledged", "quarantined")},
        "awaitingConsumer": totals["awaiting_consumer"],
        "delivered": drained["delivered"],
        "deliveriesPerSecond": drained["perSecond"],
        "telemetry": telemetry,
        "resources": scene,
        "examples": replayed["examples"],
    }


def summary(figures: dict[str, Any], verified: dict[str, Any], *, browser: str) -> str:
    """The figures for people."""
    checks = verified["checks"]
    examined = sum(check["examined"] for check in checks)
    broken = [f"{check['id']} ({check['violations']:,})" for check in checks if check["violations"]]
    verdict = f"{len(checks)} invariants hold in all databases, {examined:,} facts examined"
    if broken:
        verdict = f"NOT PROVEN: {', '.join(broken)}. `manage.py verify` shows where."
    skipped = figures["skipped"]
    lines = [
        f"trace       {figures['trace']}: {figures['rows']:,} rows, {len(skipped):,} skipped",
        *(f"              line {row['line']}: {row['reason']}" for row in skipped[:SHOWN]),
        *(f"            {count:,} NOT admitted: {reason}" for reason, count in figures["notAdmitted"].items()),
        f"runs        {figures['runs']:,}, {figures['newRuns']:,} of them new at {figures['admissionsPerSecond']:,}/s",
        f"events      {figures['events']:,}, {figures['published']:,} of them published",
        f"deliveries  {figures['acknowledged']:,} acknowledged of {figures['deliveries']:,}, "
        f"{figures['quarantined']:,} quarantined, {figures['awaitingConsumer']:,} awaiting a consumer",
        f"pace        {figures['delivered']:,} delivered now at {figures['deliveriesPerSecond']:,}/s",
        *telemetry_lines(figures["telemetry"]),
        *resource_lines(figures["resources"]),
        f"proof       {verdict}",
        *(f"look at     {example['operationId']}   {example['runId']}" for example in figures["examples"]),
        f"browser     {browser}",
    ]
    return "\n" + "".join(f"  {line}\n" for line in lines) + "\n"


def telemetry_lines(telemetry: dict[str, Any]) -> list[str]:
    """What was sent to the receiver, what became of it, and what it cost whom."""
    consumed, dropped = telemetry["consumption"], telemetry["dropped"]
    reasons = ", ".join(f"{count:,} for {reason}" for reason, count in dropped.items()) or "none"
    charged = int(consumed["chargedPicos"]) / PICOS
    return [
        f"telemetry   {telemetry['sent']:,} events sent at {telemetry['eventsPerSecond']:,}/s; {telemetry['stored']:,} "
        f"stored, {telemetry['duplicates']:,} duplicates, {telemetry['conflicts']:,} conflicts; dropped: {reasons}",
        f"consumption {int(consumed['inputTokens']):,} input and {int(consumed['outputTokens']):,} output tokens in "
        f"{consumed['windows']:,} windows; {consumed['posted']:,} of {consumed['charges']:,} charges posted to "
        f"{consumed['organizations']:,} organisations, {charged:,.6f} in all; {consumed['orphanLines']:,} orphans",
    ]

"""The demo: replay a trace as admissions, let the workers deliver, prove the result, say it in one summary."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from config.supervise.prepare import StepFailed, Steps


class DemoFailed(RuntimeError):
    """A command of the demo did not say what it should; the text names it."""


@dataclass(frozen=True, slots=True)
class Demo:
    """What to replay (None: the excerpt that comes with the project, all of it), and whether to end afterwards."""

    trace: Path | None
    limit: int | None
    leave: bool

    def run(self, *, steps: Steps, look: Callable[[], None], url: str, login: str) -> bool:
        """Replay, drain, verify, and print the summary; whether everything is proven."""
        began = datetime.now(UTC)
        replay = ["replay_trace", "--progress"]
        replay += ["--trace", str(self.trace.resolve())] if self.trace else []
        replay += ["--limit", str(self.limit)] if self.limit is not None else []
        replayed = _last_json(steps.show(*replay, look=look), "replay_trace")
        drained = _last_json(
            steps.show("await_drained", "--progress", "--since", began.isoformat(), look=look), "await_drained"
        )
        verified = _last_json(steps.show("verify", "--json", look=look, may_fail=True), "verify")
        figures = _figures(replayed, drained, verified, began)
        sys.stdout.write(_summary(figures, url=url, login=login))
        sys.stdout.write(f"DEMO {json.dumps({**figures, 'url': url})}\n")
        sys.stdout.flush()
        return bool(figures["ok"])


def _last_json(output: str, command: str) -> dict[str, Any]:
    """The JSON object that a command printed: its whole output, or its last line."""
    for text in (output, output.strip().rpartition("\n")[2]):
        try:
            found = json.loads(text)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    raise DemoFailed(f"`manage.py {command}` printed no JSON:\n{output[-2000:]}")


def _figures(
    replayed: dict[str, Any], drained: dict[str, Any], verified: dict[str, Any], began: datetime
) -> dict[str, Any]:
    """Totals of the databases, and what this replay added at which rate."""
    last = drained["last_delivered_at"]
    seconds = (datetime.fromisoformat(last) - began).total_seconds() if last else 0.0
    added = int(drained["acknowledged_since"])
    return {
        "ok": bool(verified["ok"]) and drained["quarantined"] == 0,
        "replay": replayed,
        "deliveries": drained["deliveries"],
        "acknowledged": drained["acknowledged"],
        "quarantined": drained["quarantined"],
        "awaiting_consumer": drained["awaiting_consumer"],
        "delivered_now": added,
        "deliveries_per_second": round(added / seconds, 1) if seconds > 0 and added else 0.0,
        "verify": {"ok": verified["ok"], "totals": verified.get("totals", {})},
    }


def _summary(figures: dict[str, Any], *, url: str, login: str) -> str:
    verdict = "proven" if figures["ok"] else "NOT proven"
    return f"""
{figures}
{verdict} {url} {login}
"""


__all__ = ["Demo", "DemoFailed", "StepFailed"]

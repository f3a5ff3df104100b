"""An installation of its own: servers that a test may kill, with all databases migrated."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from config.embedded import Embedded, Services
from config.servers.server import accepts
from tests.crash.processes import ROOT, SHORT_LEASE, Crew
from tests.ground.conftest import clean_environment
from tests.ground.waiting import until

OPEN = "SELECT count(*) FROM outbox_deliveries WHERE status IN ('pending', 'leased')"
DONE = "SELECT count(*) FROM outbox_deliveries WHERE status = 'acknowledged'"
NO_BROKER = {"REDIS_URL": "redis://127.0.0.1:1/0"}
CELERY_WORKER = (
    *("-m", "celery", "-A", "config.celery", "worker", "--pool", "prefork", "--concurrency", "2"),
    *("--queues", "owner.core", "--without-gossip", "--without-mingle", "--without-heartbeat"),
)


class Site:
    """One state directory with running servers. `environment` is what its processes get."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.embedded = Embedded(state=state)
        self.services: Services = self.embedded.start()
        self.environment = clean_environment(STATE_DIR=str(state), **SHORT_LEASE)

    def migrate(self) -> None:
        """Make every database, role and table."""
        self.manage("migrate_owners")

    def manage(self, *arguments: str, ok: bool = True) -> str:
        """Run a `manage.py` command; what it wrote to its standard output."""
        return self.python("manage.py", *arguments, ok=ok)

    def python(self, *arguments: str, ok: bool = True, more: dict[str, str] | None = None) -> str:
        """Run Python to its end; `more` adds to the environment."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**self.environment, **(more or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert not ok or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def crew(self) -> Crew:
        """Processes on this site."""
        return Crew(self.environment)

    def append(self, admissions: int, *, tell: bool = True) -> None:
        """Append this many admissions, two events each, one transaction each; without a broker unless `tell`."""
        self.python("-m", "tests.crash.appender", str(admissions), more={} if tell else NO_BROKER)

    def kill_server(self, name: str, how: signal.Signals) -> None:
        """End `postgres` or `valkey`, and wait until its port is closed."""
        os.kill(self.embedded.server_pids()[name], how)
        ports = {"postgres": self.services.postgres_port, "valkey": urlsplit(self.services.redis_url).port or 0}
        until(lambda: not accepts(ports[name]))

    def revive_server(self, name: str) -> None:
        """Start a killed server again, as the supervisor does; its last threads may take a moment to leave."""
        until(lambda: self.embedded.revive() == (name,))

    def rows(self, statement: str, *values: Any, owner: str = "core") -> list[tuple[Any, ...]]:
        """What a query answers in an owner's database, asked by the administrator."""
        with self.administrator(owner) as connection:
            return connection.execute(statement, list(values) or None).fetchall()

    def administrator(self, database: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """A connection that may do anything."""
        return psycopg.connect(
            host=self.services.postgres_host, port=self.services.postgres_port, user=self.services.postgres_user,
            password=self.services.postgres_password, dbname=database, autocommit=True,
        )  # fmt: skip

    def drained(self) -> None:
        """Wait until nothing is open at core."""
        until(lambda: self.rows(OPEN) == [(0,)], patience=90)

    def done(self) -> int:
        """Acknowledged deliveries of core."""
        found: int = self.rows(DONE)[0][0]
        return found

    def prove_applied_once(self) -> dict[str, Any]:
        """Every event of core was applied exactly once, and `verify` finds nothing; its totals."""
        report = json.loads(self.manage("verify", "--json", ok=False) or "{}")
        assert report.get("ok"), [check for check in report.get("checks", []) if check["violations"]]
        applied = self.rows("SELECT coalesce(sum(applied_events), 0) FROM projection_build_runs")[0][0]
        totals: dict[str, Any] = report["totals"]
        assert totals["events"] == totals["acknowledged"] == totals["receipts"] == applied, totals
        return totals

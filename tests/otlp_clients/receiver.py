"""The receiver as a deployment runs it, on servers that a test may kill."""

import json
import os
import signal
import socket
import urllib.request
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.crash.processes import Crew, Process, ended
from tests.crash.site import Site
from tests.ground.system import descendants
from tests.ground.waiting import until

STORED = "SELECT count(*), count(DISTINCT (event_id, occurred_at)) FROM llm_billing_events WHERE cluster_id = %s"
QUICK, SLOW = 20, 4
"""Clusters that all tests together may use."""
UNLIMITED = 1_000_000
SLOW_RATE = 2
"""Requests a second, sustained and at once, of a slow cluster."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster with a token."""

    number: int
    token: str


class Receiver:
    """One `manage.py receive_telemetry` with its processes."""

    def __init__(self, site: Site, crew: Crew) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.site = site
        rates = [str(UNLIMITED)] * QUICK + [str(SLOW_RATE)] * SLOW
        made = json.loads(site.python("-m", "tests.otlp_clients.make_clusters", *rates))
        clusters = [Cluster(int(number), token) for number, token in made.items()]
        self._quick, self._slow = iter(clusters[:QUICK]), iter(clusters[QUICK:])
        metrics = site.state / f"metrics-{self.port}"
        metrics.mkdir()
        self.parent: Process = crew.start(
            ["manage.py", "receive_telemetry"],
            OTLP_PORT=str(self.port),
            OTLP_PROCESSES="2",
            OTLP_SINK_TYPE="timescale",
            OTLP_JSON="1",
            PROMETHEUS_MULTIPROC_DIR=str(metrics),
        )
        until(lambda: self._is_ready() or self.parent.poll() is not None, patience=120)
        assert self.parent.poll() is None, self.parent.said()

    @property
    def url(self) -> str:
        """Where clients send, without the path."""
        return f"http://127.0.0.1:{self.port}"

    def processes(self) -> list[int]:
        """The processes that answer now."""
        return descendants(self.parent.pid)

    def kill_one(self, which: int) -> int:
        """kill -9 of one of the processes that answer, as soon as there is one; its id."""
        until(self.processes)
        alive = self.processes()
        victim = alive[which % len(alive)]
        os.kill(victim, signal.SIGKILL)
        return victim

    def counted(self, name: str) -> float:
        """The sum of a counter over its labels."""
        text = self._get("/metrics").decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(sample.value for sample in samples if sample.name == name)

    def stop(self) -> None:
        """SIGTERM, and a clean end."""
        ended(self.parent)

    def cluster(self, *, slow: bool = False) -> Cluster:
        """A cluster that nobody used yet; a slow one may send `SLOW_RATE` requests a second."""
        return next(self._slow if slow else self._quick)

    def rotate(self, number: int) -> str:
        """Rotate the tokens of a cluster; the new one."""
        return self.site.manage("otlp_tokens", "rotate", str(number)).strip()

    def stored(self, cluster: Cluster) -> tuple[int, int]:
        """Rows of the cluster, and distinct keys among them."""
        rows, keys = self.site.rows(STORED, str(cluster.number), owner="telemetry")[0]
        return rows, keys

    def rows(self, cluster: Cluster) -> list[dict[str, Any]]:
        """Every stored event of the cluster, by id."""
        statement = "SELECT row_to_json(e)::text FROM llm_billing_events e WHERE cluster_id = %s ORDER BY prompt_tokens"
        return [json.loads(text) for (text,) in self.site.rows(statement, str(cluster.number), owner="telemetry")]

    def _is_ready(self) -> bool:
        try:
            return bool(json.loads(self._get("/health/ready"))["ready"])
        except OSError:
            return False

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            return bytes(answer.read())

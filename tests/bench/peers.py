"""Part `peers`: how fast queues on the same server drain a backlog whose handler does nothing, 2 processes each.

They do less: no byte proof, no receipt, no projection; pgmq keeps no history. Each is used as its documentation
advises for throughput. They live in `.venv-bench`, so that their requirements never meet ours.
"""

import subprocess
import sys
from statistics import median

from tests.bench import children, drain, ground
from tests.bench.size import Size
from tests.bench.table import Line

ENVIRONMENT = children.ROOT / ".venv-bench"
PYTHON = ENVIRONMENT / "bin" / "python"
EVENTS = {"procrastinate": 4_000, "pgqueuer": 40_000, "pgmq": 100_000}
"""Backlogs of some seconds each."""


def measure(size: Size) -> list[Line]:
    """Rates of the peers and of ours in the same rounds, and the ratio to procrastinate."""
    if reason := _installed():
        return [Line("peers", f"{name}, no-op handler", None, "/s", note=reason) for name in EVENTS]
    events = {name: size.of(count, least=200) for name, count in EVENTS.items()}
    rates: dict[str, list[float]] = {name: [] for name in ("ours", *events)}
    own = size.of(40_000, least=2_000)
    drain.load(own)
    for number in range(size.rounds):
        rates["ours"].append(drain.drain("dispatcher", events=own, number=number).rate)
        for name, count in events.items():
            rates[name].append(_rate(name, count))
            print(f"  {name}: {rates[name][-1]:,.0f}/s", flush=True)
    lines = [Line("peers", f"{name}, no-op handler", median(rates[name]), "/s") for name in events]
    ratios = [our / peer for our, peer in zip(rates["ours"], rates["procrastinate"], strict=True)]
    return [
        Line("peers", "ours, full work", median(rates["ours"]), "/s"),
        *lines,
        Line("peers", "ours to procrastinate", median(ratios), "×", goal="≥ 15"),
    ]


def _installed() -> str:
    """Empty if the peers can run; else why not. Installs them where the network allows it."""
    requirements = children.ROOT / "requirements-bench.txt"
    stamp = ENVIRONMENT / ".installed"
    if stamp.exists() and stamp.stat().st_mtime >= requirements.stat().st_mtime:
        return ""
    for command in (
        [sys.executable, "-m", "venv", str(ENVIRONMENT)],
        [str(PYTHON), "-m", "pip", "install", "-q", "--require-hashes", "-r", str(requirements)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"the environment of the peers could not be made: {done.stderr.strip().splitlines()[-1:]}"
    stamp.touch()
    return ""


def _rate(name: str, events: int) -> float:
    database = f"bench_peer_{name}"
    ground.drop(database)
    with ground.administrator() as server:
        server.execute(f"CREATE DATABASE {database}")
        server.execute("CHECKPOINT")
    with ground.administrator(database) as connection:
        info = connection.info
        dsn = f"postgresql://{info.user}:{info.password}@{info.host}:{info.port}/{database}"
    work, python, env = f"peer_{name}", str(PYTHON), {"BENCH_DSN": dsn}
    try:
        children.run(work, "load", str(events), prefix="", python=python, env=env)
        ran = children.run(work, "drain", prefix="", processes=drain.PROCESSES, python=python, env=env)
    finally:
        ground.drop(database)
    if ran.total("done") != events:
        raise RuntimeError(f"{name} did {ran.total('done'):.0f} of {events} jobs: {ran.answers}")
    return events / ran.seconds

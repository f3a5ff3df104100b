"""`python -m config.supervisor up|demo`: the whole system as one foreground process, for `make up` and `make demo`.

It holds the lock of the state directory, starts the embedded servers where no real ones are named, prepares the
databases, runs the programs of `deploy/Procfile`, and keeps all of them alive. Ctrl-C stops everything in reverse
order, a second Ctrl-C at once. However it dies, its children die with it and the data stays.
"""

import argparse
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

from django.core.exceptions import ImproperlyConfigured

from config.embedded import EmbeddedError, state_dir
from config.metric_files import start_empty
from config.supervise.address import Address, Addresses, choose_addresses, listens, prove_free
from config.supervise.demo import Demo, DemoFailed
from config.supervise.directory import end_left_overs, forget_record, take_state_directory, write_record
from config.supervise.prepare import (
    OPERATOR,
    ROOT,
    StepFailed,
    Steps,
    embedded_servers,
    needs_embedded,
    operator_password,
    prepare,
)
from config.supervise.programs import ProcfileInvalid, read_procfile
from config.supervise.refused import Refused
from config.supervise.stopping import Stopped, StopRequest
from config.supervise.watch import CannotLive, Watch

READY_SECONDS = 120.0
"""How long a server may take until it answers that it is ready; a slow machine needs some of it."""
FAILURES = (CannotLive, DemoFailed, EmbeddedError, ImproperlyConfigured, ProcfileInvalid, Refused, StepFailed)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 after an orderly end, 1 after a failure, which is explained on standard error."""
    parser = argparse.ArgumentParser(prog="config.supervisor", description="Run the whole system in the foreground.")
    modes = parser.add_subparsers(dest="mode", required=True)
    modes.add_parser("up", help="Run until Ctrl-C.")
    demo = modes.add_parser("demo", help="Replay a trace, prove the result, and stay up.")
    demo.add_argument("--trace", type=Path, help="CSV with TIMESTAMP, ContextTokens, GeneratedTokens.")
    demo.add_argument("--limit", help="Replay this many rows at most.")
    demo.add_argument("--exit", action="store_true", help="Stop at the end; the exit code is 0 only if all is proven.")
    chosen = parser.parse_args(arguments)
    stop = StopRequest()
    try:
        wanted = (
            Demo.asked(trace=chosen.trace, limit=chosen.limit, leave=chosen.exit) if chosen.mode == "demo" else None
        )
        return _run(stop, wanted)
    except Stopped:
        return 0 if wanted is None else 130
    except FAILURES as error:
        sys.stderr.write(f"\n{error}\n")
        return 1


def _run(stop: StopRequest, demo: Demo | None) -> int:
    state = state_dir()
    with ExitStack() as undo:
        undo.callback(take_state_directory(state).release)
        for name in end_left_overs(state):
            say(f"Ended {name}, which a killed run had left behind.")
        addresses = choose_addresses()
        web, embedded = addresses.web, None
        if needs_embedded(os.environ):
            say(f"Starting PostgreSQL and Valkey in {state} …")
            embedded = embedded_servers(state=state)
            undo.callback(embedded.stop)
            embedded.start()
            stop.check()
        variables = _variables(state, addresses)
        start_empty(Path(variables["PROMETHEUS_MULTIPROC_DIR"]))
        steps = Steps(environment=variables, log=state / "log" / "prepare.log", stop=stop)
        password = operator_password(state)
        prepare(steps=steps, password=password, say=say)
        watch = Watch(
            programs=read_procfile(path=ROOT / "deploy" / "Procfile", environment=variables),
            directory=ROOT,
            log=state / "log",
            environment=variables,
            report=say,
        )
        undo.callback(forget_record, state)
        undo.callback(watch.stop, hurry=lambda: stop.count > 1)
        undo.callback(say, "Stopping …")
        for address in addresses.all:
            prove_free(address)
        watch.start()
        write_record(state, url=web.url, children=watch.pids())

        def look() -> None:
            stop.pause()
            before = watch.pids()
            for name in embedded.revive() if embedded else ():
                say(f"{name} had ended; it runs again.")
            watch.look()
            if watch.pids() != before:
                write_record(state, url=web.url, children=watch.pids())

        for address in addresses.all:
            _await_ready(address, look, pids=watch.pids)
        login = f"{OPERATOR} / {password}"
        say(f"Ready: {web.url}/admin/  login: {login}  logs: {state / 'log'}")
        say(f"Telemetry: {addresses.receiver.url}/v1/logs")
        if demo is not None:
            proven = demo.run(steps=steps, look=look, url=web.url, login=login)
            if demo.leave:
                return 0 if proven else 1
        say("Ctrl-C stops everything and keeps the data.")
        while True:
            look()


def _variables(state: Path, addresses: Addresses) -> Mapping[str, str]:
    """The environment of everything that is started."""
    return {
        **os.environ,
        "STATE_DIR": str(state),
        "WEB_HOST": addresses.web.host,
        "WEB_PORT": str(addresses.web.port),
        "OTLP_HOST": addresses.receiver.host,
        "OTLP_PORT": str(addresses.receiver.port),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PROMETHEUS_MULTIPROC_DIR": str(state / "metrics"),
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "config.settings",
    }


def _await_ready(address: Address, look: Callable[[], None], *, pids: Callable[[], Mapping[str, int]]) -> None:
    """Return when /health/ready answers 200. Raises `CannotLive` with the last answer when it takes too long."""
    deadline = monotonic() + READY_SECONDS
    answer = "nothing"
    while monotonic() < deadline:
        look()
        if not listens(pids().get(address.program, 0), address.port):
            continue  # whoever answers there is not ours
        try:
            with urllib.request.urlopen(f"{address.url}/health/ready", timeout=5):  # noqa: S310  (our own address)
                return
        except urllib.error.HTTPError as error:
            answer = f"{error.code} {error.read(2000).decode(errors='replace')}"
        except OSError as error:
            answer = str(error)
    raise CannotLive(f"The {address.title} is not ready after {READY_SECONDS:.0f} s. Its last answer: {answer}")


def say(line: str) -> None:
    """One line for the operator; a closed terminal is no reason to fail."""
    with suppress(OSError):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())

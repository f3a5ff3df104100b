"""Through a pooler that hands a server session to another client after each transaction (D21)."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from config.databases import services
from config.owners import OWNERS, owner_roles
from config.servers.server import accepts, free_port
from outbox.models import DeliveryStatus, OutboxDelivery, OutboxEvent

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
APPEND = """
from django.db import transaction
from outbox.append import append, append_many
from tests.outbox.make import admission, run_created
for _ in range(40):
    with transaction.atomic(using="default"):
        append(run_created(), using="default")
        append_many(admission(), using="default")
"""


@pytest.fixture
def pooler(tmp_path: Path, database: None) -> Iterator[dict[str, str]]:
    """A transaction pooler with one server session per role and database; the environment of its clients."""
    running = services()
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed; Debian has it in the package pgbouncer")
    if running is None:
        pytest.skip("needs the embedded server, whose passwords the pooler can be given")
    port = free_port()
    users = {database["USER"]: database["PASSWORD"] for database in settings.DATABASES.values()}
    assert len(users) == len(list(owner_roles()))
    (tmp_path / "users.txt").write_text("".join(f'"{name}" "{password}"\n' for name, password in users.items()))
    (tmp_path / "pooler.ini").write_text(
        f"[databases]\n* = host={running.postgres_host} port={running.postgres_port}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = scram-sha-256\n"
        f"auth_file = {tmp_path}/users.txt\npool_mode = transaction\ndefault_pool_size = 1\nreserve_pool_size = 0\n"
        f"ignore_startup_parameters = extra_float_digits\nlogfile = {tmp_path}/pooler.log\n"
    )
    open_to_nobody(tmp_path)
    as_user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    child = subprocess.Popen([PROGRAM, str(tmp_path / "pooler.ini")], cwd="/", **as_user)  # type: ignore[call-overload]  # the keywords of subprocess come from a dict
    try:
        deadline = time.monotonic() + 20
        while not accepts(port):
            assert child.poll() is None and time.monotonic() < deadline, (tmp_path / "pooler.log").read_text()
        yield {
            "DATABASE_TRANSACTION_POOLER": "1",
            "DATABASE_ROLE_SECRET": running.postgres_password,
            **{
                f"DATABASE_URL_{owner.name.upper()}":
                    f"postgresql://127.0.0.1:{port}/{settings.DATABASES[owner.alias]['NAME']}"
                for owner in OWNERS
            },
        }  # fmt: skip
    finally:
        child.terminate()
        child.wait(10)


def open_to_nobody(path: Path) -> None:
    """Let an account without rights read what is below `path` and write into it."""
    for place in [path, *path.parents]:
        if place in (Path("/tmp"), Path("/")) or place.stat().st_uid != os.geteuid():
            break
        place.chmod(0o755)
    path.chmod(0o777)
    for file in path.iterdir():
        file.chmod(0o644)


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """A process of the project behind the pooler."""
    return subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environment, "OUTBOX_BATCH_SIZE": "10"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.trap("D21")
def test_append_and_dispatch_work_through_a_transaction_pooler(pooler: dict[str, str]) -> None:
    for commands in (
        [("manage.py", "shell", "-c", APPEND)] * 2,
        [("manage.py", "dispatch", "--owner", "core", "--once")] * 2,
    ):
        for process in [start(pooler, *command) for command in commands]:
            out, err = process.communicate(timeout=240)
            assert process.returncode == 0, out + err
    assert OutboxEvent.objects.using("default.read").filter(published_at=None).count() == 0
    states = OutboxDelivery.objects.using("default.read").values_list("status", flat=True)
    assert list(states) == [DeliveryStatus.ACKNOWLEDGED] * 240
    assert start(pooler, "manage.py", "owners", "--json").wait(120) == 0

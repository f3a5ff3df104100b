"""Processes refuse to start where files cannot be renamed into place, and what was left is swept at once (C9, F5)."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
from celery.signals import worker_init, worker_ready
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from attachments.files.tasks import sweep_files
from config.owners import owner_named
from tests.conftest import ROOT
from tests.files.killing import killed_at
from tests.files.papers import agrees, intents, path_of, stored, tree, write
from tests.files.test_paths import OTHER_DEVICE

pytestmark = [pytest.mark.spec("C5", "C9")]
QUEUE = owner_named("attachments").queue


@pytest.fixture
def elsewhere(root: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files would be received on another filesystem than that of the tree."""
    if not OTHER_DEVICE.is_dir() or OTHER_DEVICE.stat().st_dev == root.parent.stat().st_dev:
        pytest.skip("there is no second filesystem to try")
    settings.ATTACHMENTS_INCOMING = OTHER_DEVICE / f"incoming-{os.getpid()}"
    monkeypatch.setenv("ATTACHMENTS_INCOMING", str(settings.ATTACHMENTS_INCOMING))


@pytest.mark.trap("F5")
def test_the_web_process_refuses_to_start_on_two_filesystems(elsewhere: None) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import config.asgi"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "must be on one filesystem" in done.stderr


@pytest.mark.trap("F5")
def test_a_worker_refuses_to_start_on_two_filesystems(elsewhere: None) -> None:
    with pytest.raises(SystemExit, match="must be on one filesystem"):
        worker_init.send(sender=None)


def test_a_worker_that_starts_has_the_tree_swept(database: None) -> None:
    broker = redis.from_url(django_settings.REDIS_URL)
    key = f"backbone:{QUEUE}"
    broker.delete(key)
    worker_ready.send(sender=None)
    (message,) = broker.lrange(key, 0, -1)
    assert sweep_files.name.encode() in message
    broker.delete(key)


def test_the_beat_sweeps_on_the_owners_queue(desk: Path) -> None:
    entry = django_settings.CELERY_BEAT_SCHEDULE["sweep-files"]
    assert (entry["task"], entry["options"]["queue"]) == (sweep_files.name, QUEUE)
    killed_at("files.placed", lambda: write("a", b"one"))
    while intents() == [("place", "open", None)]:
        sweep_files.apply(throw=True)
    assert intents() == [("place", "undone", "sweep")]
    assert tree(desk) == {}


def test_an_operator_sweeps_and_is_told_what_resists(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write("a", b"one")
    killed_at("commercial.committed", lambda: write("a", b"two"))
    call_command("sweep_files")
    assert "1 kept, 0 undone, 0 at work, 0 failed, 0 received files removed" in capsys.readouterr().out
    assert tree(desk) == stored(a=b"two")
    assert agrees(desk)
    killed_at("papers.row", lambda: write("a", b"three"))
    path_of("a").below(desk).unlink()
    (path_of("a").below(desk) / "in the way").mkdir(parents=True)
    with pytest.raises(CommandError, match="FilesNotEnded"):
        while "1 failed" not in capsys.readouterr().out:
            call_command("sweep_files")

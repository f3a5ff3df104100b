"""Received files: streamed and hashed beside the tree, gone unless placed, never the whole body in memory."""

import hashlib
import io
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from attachments.files.errors import AlreadyPlaced, TooLarge
from attachments.files.receive import CHUNK_BYTES, Incoming, receive
from attachments.files.stage import StagedFiles
from attachments.files.sweep import Swept, sweep
from billing.commercial import hooks
from tests.files.killing import killed_at
from tests.files.papers import ALIAS, path_of, tree, write

MIB = 2**20


class Body:
    """A body of so many bytes that is nowhere as a whole; `fails` after so many of them."""

    def __init__(self, size: int, *, fails: int | None = None) -> None:
        self.left, self.fails, self.block = size, fails, bytes(CHUNK_BYTES)

    def read(self, size: int, /) -> bytes:
        if self.fails is not None and self.left <= self.fails:
            raise ConnectionResetError
        chunk = self.block[: min(size, self.left)]
        self.left -= len(chunk)
        return chunk


def test_length_and_digest_are_those_of_what_is_on_disk_and_leaving_removes_it(root: Path) -> None:
    body = bytes(range(256)) * 4000
    with receive(io.BytesIO(body)) as incoming:
        assert (incoming.size, incoming.sha256) == (len(body), hashlib.sha256(body).hexdigest())
        assert incoming.path.read_bytes() == body
        assert incoming.path.stat().st_mode & 0o777 == 0o600
    assert tree(root) == {}


@pytest.mark.spec("C5")
def test_a_hundred_mebibytes_are_received_in_the_memory_of_a_few_chunks(root: Path) -> None:
    tracemalloc.start()
    try:
        with receive(Body(100 * MIB)) as incoming:
            _, peak = tracemalloc.get_traced_memory()
            assert incoming.size == incoming.path.stat().st_size == 100 * MIB
    finally:
        tracemalloc.stop()
    assert peak < 4 * MIB


@pytest.mark.parametrize(("size", "limit"), [(MIB + 1, MIB), (1, 0)])
def test_more_than_the_limit_is_refused_and_leaves_nothing(root: Path, size: int, limit: int) -> None:
    with pytest.raises(TooLarge):
        receive(Body(size), limit=limit)
    assert tree(root) == {}


def test_the_limit_is_that_of_the_settings_and_reaching_it_is_allowed(root: Path, settings: Any) -> None:
    settings.ATTACHMENTS_LARGEST_BYTES = MIB
    with receive(Body(MIB)) as incoming:
        assert incoming.size == MIB
    with pytest.raises(TooLarge):
        receive(Body(MIB + 1))


def test_a_body_that_breaks_off_leaves_nothing(root: Path) -> None:
    with pytest.raises(ConnectionResetError):
        receive(Body(MIB, fails=MIB // 2))
    assert tree(root) == {}


def test_an_empty_body_is_a_file(desk: Path) -> None:
    write("a", b"")
    assert tree(desk) == {path_of("a").text: b""}


def test_a_received_file_is_placed_once(desk: Path) -> None:
    with receive(io.BytesIO(b"text")) as incoming:
        with hooks.business_transaction(using=ALIAS) as work:
            StagedFiles(work).place(path_of("a"), incoming)
        with pytest.raises(AlreadyPlaced), hooks.business_transaction(using=ALIAS) as work:
            StagedFiles(work).place(path_of("b"), incoming)
    assert tree(desk) == {path_of("a").text: b"text"}


@pytest.mark.spec("C9")
@pytest.mark.trap("F4")
def test_the_sweep_removes_what_a_dead_process_received_and_nothing_that_is_being_received(desk: Path) -> None:
    with Incoming() as unfinished:
        unfinished.write(b"half")
        killed_at("files.received", lambda: receive(io.BytesIO(b"whole")))
        assert sweep() == Swept(incoming=1)
        unfinished.write(b" and half")
        unfinished.finish()
        assert tree(desk) == {f".incoming/{unfinished.path.name}": b"half and half"}
    assert sweep() == Swept()

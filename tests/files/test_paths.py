"""Paths on disk are made of ids, and files are received where they can be renamed into the tree (F5, F6)."""

import os
import unicodedata
import uuid
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from attachments.files.errors import DifferentFilesystems, NotAnId, StorageFailed
from attachments.files.path import StoredPath
from attachments.files.place import place_of_files
from attachments.files.sweep import sweep

TENANT, CLAIM, ITEM, PAPER = (uuid.UUID(int=number) for number in range(1, 5))
OTHER_DEVICE = Path("/dev/shm")
NAMES = {
    "upwards": "../../etc/passwd",
    "absolute": "/etc/passwd",
    "zero": "a\0b",
    "long": "x" * 300,
    "composed": unicodedata.normalize("NFC", "é"),
    "decomposed": unicodedata.normalize("NFD", "é"),
    "reserved": "CON",
    "empty": "",
    "dot": ".",
    "hidden": ".incoming",
    "upper case": str(ITEM).upper().replace("0", "A"),
    "braces": f"{{{ITEM}}}",
    "without dashes": ITEM.hex,
}


@pytest.mark.trap("F6")
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_no_name_becomes_a_path(name: Any) -> None:
    with pytest.raises(NotAnId):
        StoredPath((TENANT, CLAIM, name))
    with pytest.raises(NotAnId):
        StoredPath.parse(f"{TENANT}/{CLAIM}/{name}")


@pytest.mark.trap("F6")
def test_a_path_is_the_ids_and_nothing_else(root: Path) -> None:
    path = StoredPath.of(TENANT, CLAIM, ITEM, PAPER)
    assert path.below(root) == root / str(TENANT) / str(CLAIM) / str(ITEM) / str(PAPER)
    assert StoredPath.parse(path.text) == path
    assert path.folder == StoredPath.of(TENANT, CLAIM).text


@pytest.mark.parametrize("ids", [(), (TENANT,), (TENANT,) * 5])
def test_a_path_is_never_the_root_a_whole_tenant_or_deeper_than_a_file(ids: tuple[uuid.UUID, ...]) -> None:
    with pytest.raises(NotAnId):
        StoredPath(ids)
    with pytest.raises(NotAnId):
        StoredPath.of(TENANT, CLAIM, None, PAPER)


@pytest.fixture
def elsewhere(root: Path, settings: Any) -> Path:
    """Files would be received on another filesystem than that of the tree."""
    if not OTHER_DEVICE.is_dir() or OTHER_DEVICE.stat().st_dev == root.parent.stat().st_dev:
        pytest.skip("there is no second filesystem to try")
    settings.ATTACHMENTS_INCOMING = OTHER_DEVICE / f"incoming-{os.getpid()}"
    return root


@pytest.mark.trap("F5")
def test_two_filesystems_are_refused_by_the_check_and_by_every_process_that_uses_them(elsewhere: Path) -> None:
    with pytest.raises(SystemCheckError, match=r"files\.E001"):
        call_command("check")
    for use in (place_of_files, sweep):
        with pytest.raises(DifferentFilesystems, match="ATTACHMENTS_INCOMING"):
            use()


@pytest.mark.trap("F5")
def test_the_check_passes_and_makes_nothing_where_nothing_is_yet(root: Path) -> None:
    call_command("check")
    assert not root.exists()
    assert place_of_files().root == root
    assert [path.name for path in root.iterdir()] == [".incoming"]
    assert list((root / ".incoming").iterdir()) == []


@pytest.mark.trap("F7")
def test_a_root_that_cannot_be_made_is_refused_in_words(root: Path) -> None:
    root.write_text("a file")
    with pytest.raises(StorageFailed, match="File exists"):
        place_of_files()

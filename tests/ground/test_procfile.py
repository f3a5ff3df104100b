"""One list of processes: the Procfile is read strictly, and it and the compose file serve every owner's queue."""

import re
from pathlib import Path

import pytest

from config.owners import OWNERS
from config.supervise.programs import ProcfileInvalid, read_procfile
from tests.ground.conftest import ROOT

PROCFILE = ROOT / "deploy" / "Procfile"


def queues(command: tuple[str, ...]) -> set[str]:
    return set(command[command.index("--queues") + 1].split(","))


def test_the_worker_serves_the_queue_of_every_owner() -> None:
    programs = {program.name: program for program in read_procfile(path=PROCFILE, environment={})}
    assert list(programs) == ["web", "otlp", "worker", "beat"]
    assert queues(programs["worker"].command) == {owner.queue for owner in OWNERS}


def test_the_compose_file_has_a_worker_for_every_owner() -> None:
    text = (ROOT / "deploy" / "compose.yaml").read_text()
    assert set(re.findall(r"--queues (\S+)", text)) == {owner.queue for owner in OWNERS}
    for owner in OWNERS:
        assert f"DATABASE_URL_{owner.name.upper()}:" in text


def test_variables_are_filled_in_or_take_their_default(tmp_path: Path) -> None:
    path = tmp_path / "Procfile"
    path.write_text("# a remark\n\nweb: serve --port ${WEB_PORT:-8000} '${TITLE}'\n")
    (program,) = read_procfile(path=path, environment={"TITLE": "two words"})
    assert program.command == ("serve", "--port", "8000", "two words")


def test_a_state_directory_with_a_space_stays_one_word() -> None:
    programs = {program.name: program for program in read_procfile(path=PROCFILE, environment={"STATE_DIR": "/a b"})}
    assert "/a b/beat-schedule" in programs["beat"].command


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("web serve", "line 2: write `name: command`"),
        (": serve", "line 2: write `name: command`"),
        ("we-b: serve", "line 2: write `name: command`"),
        ("web:", "line 2: write `name: command`"),
        ("web: serve ${NOWHERE}", "line 2: NOWHERE has no value"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "Procfile"
    path.write_text(f"# a remark\n{line}\n")
    with pytest.raises(ProcfileInvalid, match=message):
        read_procfile(path=path, environment={})

"""That the benchmark runs, says what it measured, and leaves a file; never how fast anything is."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.children import ROOT
from tests.bench.size import QUICK
from tests.bench.table import Line, show


@pytest.mark.slow
def test_the_quick_form_measures_and_writes_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--quick", "drain", "append"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(Path(done.stdout.strip().splitlines()[-1]).read_text())
    measured = {(line["part"], line["what"]): line["value"] for line in written["lines"]}
    assert written["size"] == {"share": QUICK.share, "rounds": QUICK.rounds}
    assert measured["drain", "ours to bare loop"] > 0
    assert {part for part, _ in measured} == {"drain", "append"}


def test_a_figure_that_could_not_be_measured_says_why() -> None:
    table = show([Line("peers", "pgmq, no-op handler", None, "/s", note="it is not installed")])
    assert "not measured" in table
    assert "it is not installed" in table

"""A process that asks whose a token is, as a receiver does: a token and a time per line in, an outcome per line out."""

import os
import subprocess
import sys
from datetime import datetime
from types import TracebackType
from typing import Self

from tests.conftest import ROOT


class Asker:
    """One such process, which has asked before, so that whatever it may keep is kept."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.clusters.asker"],
            cwd=ROOT, env=dict(os.environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def outcome(self, token: str, now: datetime) -> str:
        """`accepted`, or the reason of the refusal."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{token} {now.isoformat()}\n")
        stdin.flush()
        return stdout.readline().strip()


def main() -> None:
    """Answer until standard input ends."""
    from tests.clusters.conftest import outcome

    for line in sys.stdin:
        token, now = line.split()
        print(outcome(b"Bearer " + token.encode(), datetime.fromisoformat(now)), flush=True)


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    main()

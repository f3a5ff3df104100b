"""Append admissions at core from a process of its own: `python -m tests.crash.appender 10`."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from tests.outbox.make import admission
    from tests.verify.world import append

    for _ in range(int(sys.argv[1])):
        append(*admission())


if __name__ == "__main__":
    main()

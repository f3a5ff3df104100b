"""`python -m tests.bench [--quick] [part ...]`: measure the named parts, or all of them."""

import argparse
import os
from importlib import import_module

from tests.bench import ground, table

PARTS = ("drain", "peers", "append", "latency", "claim", "memory", "guards", "admin", "profile")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="Parts to measure; all by default.")
    parser.add_argument("--quick", action="store_true", help="Small backlogs, one round: proves that it runs.")
    chosen = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    lines: list[table.Line] = []
    with ground.started():
        import django

        django.setup()
        ground.make_empty()
        for name in chosen.parts or PARTS:
            print(f"{name} …", flush=True)
            lines += import_module(f"tests.bench.{name}").measure(quick=chosen.quick)
        from config.embedded import state_dir

        path = table.write(lines, directory=state_dir() / "results", quick=chosen.quick)
    print(f"\n{table.show(lines)}\n\n{path}")


if __name__ == "__main__":
    main()

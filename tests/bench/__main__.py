"""`python -m tests.bench [--quick] [part ...]`: measure the named parts, or all but the profile."""

import argparse
import os
from importlib import import_module

import psycopg

from tests.bench import ground, table
from tests.bench.size import FULL, QUICK, Size

PARTS = ("drain", "peers", "append", "latency", "claim", "memory", "guards", "admin")
ON_DEMAND = ("telemetry", "commercial", "profile")
"""`make bench-otlp` measures `telemetry`, `make bench-commercial` measures `commercial`."""
MODULES = {"telemetry": "tests.bench.telemetry.measure", "commercial": "tests.bench.commercial.measure"}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, *ON_DEMAND, []], help="Parts to measure.")
    parser.add_argument("--quick", action="store_true", help="Small backlogs, one round: proves that it runs.")
    parser.add_argument("--share", type=float, default=FULL.share, help="Share of the full backlogs.")
    parser.add_argument(
        "--rounds", type=int, default=FULL.rounds, help="Interleaved rounds, of which medians are taken."
    )
    chosen = parser.parse_args()
    size = QUICK if chosen.quick else Size(share=chosen.share, rounds=chosen.rounds)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    lines: list[table.Line] = []
    with ground.started():
        import django

        django.setup()
        ground.make_empty()
        for name in chosen.parts or PARTS:
            print(f"{name} …", flush=True)
            try:
                lines += import_module(MODULES.get(name, f"tests.bench.{name}")).measure(size)
            except (RuntimeError, psycopg.Error) as error:  # the other parts are still worth measuring
                lines.append(table.Line(name, "failed", None, "", note=str(error).partition("\n")[0]))
        from config.embedded import state_dir

        path = table.write(lines, directory=state_dir() / "results", size=size)
    print(f"\n{table.show(lines)}\n\n{path}")
    if any(line.what == "failed" for line in lines):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

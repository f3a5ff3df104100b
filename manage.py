#!/usr/bin/env python
"""The command line of the project."""

import os
import sys


def main() -> None:
    """Run a management command; `manage.py help` lists them."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            "Django is not installed here. Run `make demo` or `make test` first: both install it."
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()

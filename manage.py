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
    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        if "--traceback" in sys.argv or not _unreachable(error):
            raise
        advice = "`make up` starts the services of this machine; docs/settings.md says how to name others."
        raise SystemExit(f"A service does not answer: {str(error).splitlines()[0]}\n{advice}") from error


def _unreachable(error: Exception) -> bool:
    """Whether PostgreSQL or the broker could not be reached at all; what they refuse is another matter."""
    from django.db import OperationalError
    from kombu.exceptions import OperationalError as BrokerError
    from redis.exceptions import ConnectionError as RedisError

    if isinstance(error, OperationalError):
        return getattr(error.__cause__, "sqlstate", None) is None
    return isinstance(error, BrokerError | RedisError)


if __name__ == "__main__":
    main()

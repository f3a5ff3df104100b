"""A time as operators write it for a command."""

from argparse import ArgumentTypeError
from datetime import datetime


def moment(text: str) -> datetime:
    """The instant in ISO 8601, which must name its zone. Raises `ArgumentTypeError`."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no time. Write it as 2026-03-04T10:00:00Z.") from error
    if found.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no zone. Write it as 2026-03-04T10:00:00Z.")
    return found

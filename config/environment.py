"""Typed readers of the environment. Each one fails loudly, names the variable, and says what to write into it."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE, FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


def text(name: str, default: str | None = None) -> str:
    """A non-empty text. Without a default the variable is required."""
    value = os.environ.get(name, "").strip() or default
    if value is None:
        raise ImproperlyConfigured(f"{name} is not set. Set it in the environment; see docs/settings.md.")
    return value


def flag(name: str, default: bool) -> bool:
    """1/true/yes/on or 0/false/no/off."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value not in TRUE | FALSE:
        raise ImproperlyConfigured(f"{name}={value!r} is not a flag. Write 1 or 0.")
    return value in TRUE


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number within its limits, both included."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a whole number. Write one from {low} to {high}.") from None
    if not low <= number <= high:
        raise ImproperlyConfigured(f"{name}={number} is out of range. Write a number from {low} to {high}.")
    return number


def seconds(name: str, default: float, *, low: float, high: float) -> float:
    """A duration in seconds within its limits, both included."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        number = float(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r} is not a number of seconds, such as {default}.") from None
    if not low <= number <= high:
        raise ImproperlyConfigured(f"{name}={value} s is out of range. Write {low} to {high} seconds.")
    return number


def word(name: str, default: str, *, words: Collection[str]) -> str:
    """One of these words."""
    value = os.environ.get(name, "").strip() or default
    if value not in words:
        raise ImproperlyConfigured(f"{name}={value!r} is not known. Write {' or '.join(words)}.")
    return value


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """Where one owner's database is, and with which login it is administered (empty if the URL names none)."""

    host: str
    port: int
    name: str
    user: str
    password: str
    options: Mapping[str, str]


def database_url(name: str) -> DatabaseAddress | None:
    """`postgresql://user:password@host:port/database?sslmode=…`, or None if the variable is not set."""
    value = os.environ.get(name, "").strip()
    if not value:
        return None
    url = urlsplit(value)
    if url.scheme not in {"postgres", "postgresql"} or not url.hostname or not url.path.strip("/"):
        raise ImproperlyConfigured(
            f"{name} is not a database URL. Write postgresql://user:password@host:5432/database (the user is the "
            f"administrator that `manage.py migrate_owners` creates roles with; leave it out where roles exist)."
        )
    options = dict(pair.split("=", 1) for pair in url.query.split("&") if "=" in pair)
    return DatabaseAddress(
        host=url.hostname,
        port=url.port or 5432,
        name=unquote(url.path.strip("/")),
        user=unquote(url.username or ""),
        password=unquote(url.password or ""),
        options=options,
    )

"""Let transactions about the same thing follow one another, also where there is no row yet that could be locked."""

from outbox.raw import raw_cursor

TAKE = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def take_turn(using: str, *about: object) -> None:
    """Wait for every transaction that took the same turn before; it is held until the caller's transaction ends.

    Raises `OperationalError` after the lock timeout of the role. Other things may share a turn by their hash: harmless.
    """
    with raw_cursor(using) as cursor:
        cursor.execute(TAKE, (" ".join(map(str, about)),))

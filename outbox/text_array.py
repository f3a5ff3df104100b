"""PostgreSQL array literals. psycopg's own dumping of Python lists costs a sixth of the whole delivery rate."""

from collections.abc import Sequence


def words(values: Sequence[str]) -> str:
    """`{a,b}` of values that hold none of PostgreSQL's array syntax: UUIDs, digests, numbers, wire timestamps."""
    return "{" + ",".join(values) + "}"


def texts(values: Sequence[str | None]) -> str:
    """An array literal of any text; None becomes NULL."""
    joined = '","'.join(value if value is not None else "\x00" for value in values)
    if "\\" not in joined and "\x00" not in joined and joined.count('"') == 2 * (len(values) - 1):
        return '{"' + joined + '"}' if values else "{}"
    return "{" + ",".join(_quoted(value) for value in values) + "}"


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

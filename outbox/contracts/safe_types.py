"""Which contracts can hold canonical-safe values only, proven from their JSON Schema.

Such a contract needs no look at its values: whatever its types admit has a canonical form. Text must match a pattern
that admits no U+0000 (a lone surrogate never passes pydantic), integers must be bounded within ±(2^53−1), objects must
be closed. What cannot be proven is unsafe: its values are looked at each time, and it is not published.
"""

from collections.abc import Iterable, Iterator
from re import _constants as token  # type: ignore[attr-defined]  # the standard library's own parser is not in typeshed
from re import _parser as regex  # type: ignore[attr-defined]  # likewise
from typing import Any

from outbox.contracts.canonical import MAX_DEPTH, MAX_INTEGER

Schema = dict[str, Any]


def unsafe_parts(schema: Schema) -> list[str]:
    """The paths of everything in a JSON Schema whose values might have no canonical form; empty if there is none."""
    return list(_unsafe(schema, definitions=schema.get("$defs", {}), path="$", depth=0))


def _unsafe(schema: Schema, *, definitions: dict[str, Schema], path: str, depth: int) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield path
        return
    if reference := schema.get("$ref"):
        schema = definitions[reference.rpartition("/")[2]]
    kind = schema.get("type")
    if branches := schema.get("oneOf") or schema.get("anyOf"):
        for branch in branches:
            yield from _unsafe(branch, definitions=definitions, path=path, depth=depth + 1)
    elif "const" in schema or "enum" in schema:
        if not all(_is_plain(value) for value in schema.get("enum", [schema.get("const")])):
            yield path
    elif kind == "array" and "items" in schema:
        yield from _unsafe(schema["items"], definitions=definitions, path=f"{path}[]", depth=depth + 1)
    elif kind == "object" and schema.get("additionalProperties") is False:
        for name, part in schema.get("properties", {}).items():
            yield from _unsafe(part, definitions=definitions, path=f"{path}.{name}", depth=depth + 1)
    elif not _is_safe_scalar(schema):
        yield path


def _is_plain(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value.isascii() and "\x00" not in value)


def _is_safe_scalar(schema: Schema) -> bool:
    kind = schema.get("type")
    if kind in {"boolean", "null"}:
        return True
    if kind == "integer":
        low, high = schema.get("minimum"), schema.get("maximum")
        return low is not None and high is not None and -MAX_INTEGER <= low <= high <= MAX_INTEGER
    return kind == "string" and "pattern" in schema and excludes_nul(schema["pattern"])


def excludes_nul(pattern: str) -> bool:
    """True only if no text that matches the whole pattern contains U+0000."""
    parsed = list(regex.parse(pattern))
    anchored = parsed[:1] == [(token.AT, token.AT_BEGINNING)] and parsed[-1:] == [(token.AT, token.AT_END)]
    return anchored and all(_node_excludes_nul(node) for node in parsed)


def _node_excludes_nul(node: tuple[Any, Any]) -> bool:
    kind, value = node
    if kind in {token.MAX_REPEAT, token.MIN_REPEAT}:
        return _all(value[2])
    if kind is token.SUBPATTERN:
        return _all(value[3])
    if kind is token.BRANCH:
        return all(_all(branch) for branch in value[1])
    if kind is token.IN:
        negated = value[0] == (token.NEGATE, None)
        return any(part == (token.LITERAL, 0) for part in value) if negated else _all(value)
    return (
        kind is token.AT
        or (kind is token.LITERAL and value != 0)
        or (kind is token.NOT_LITERAL and value == 0)
        or (kind is token.RANGE and value[0] > 0)
    )


def _all(nodes: Iterable[tuple[Any, Any]]) -> bool:
    return all(_node_excludes_nul(node) for node in nodes)

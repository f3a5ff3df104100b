"""Proves a content-addressed object of which only the text that its digest covers is stored."""

from datetime import UTC, datetime

from pydantic.alias_generators import to_camel

from outbox.contracts.canonical import NotCanonicalSafe, decode, sha256_hex
from outbox.contracts.contract import ContentAddressed, ContractViolation, timestamp

ANY_TIME = timestamp(datetime(2000, 1, 1, tzinfo=UTC))
"""Stands for the object's own time, which no digest covers and another column holds."""


def content_problem(contract: type[ContentAddressed], *, ref: str, digest: str, candidate: str) -> str | None:
    """What is wrong with the stored text, or None if it is canonical, fits its contract and hashes to `digest`."""
    data = candidate.encode()
    if sha256_hex(data) != digest:
        return "does not hash to its digest"
    own = {f"{contract.own_field}_ref": ref, f"{contract.own_field}_digest": digest}
    times = dict.fromkeys(contract.excluded_fields - {to_camel(name) for name in own}, ANY_TIME)
    try:
        said = decode(data)
        contract.from_wire({**said, **times, **{to_camel(name): value for name, value in own.items()}}).ensure_digest()
    except (NotCanonicalSafe, ContractViolation) as error:
        return f"does not fit its contract: {error}"
    return None

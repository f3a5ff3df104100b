"""Who does what, as the commercial facts know it: a keyed hash (C7).

Identifiers of sessions, claims or events can be guessed, so a plain hash would give them away. The key is
`COMMERCIAL_HASH_KEY`; it never changes, since an operation that is repeated must hash to what it hashed to before.
"""

import hmac
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from django.conf import settings

NAME = re.compile(r"[a-z][a-z0-9._-]{0,79}")
TENANT_KINDS = frozenset({"organization", "personal"})
BASES = frozenset({"events", "bytes"})
PROVIDER = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that business code is about to do, whoever repeats it. Raises `ValueError` for a part without form.

    `tool`, `dimension`, `quantity_basis` and `provider_code` are constants of the calling code. `identity` says which
    operation it is (a session, a request id, hashes of rows, a digest of content); it is hashed, never stored or shown.
    """

    tenant_kind: Literal["organization", "personal"]
    tenant_id: str
    tool: str
    dimension: str
    quantity_basis: Literal["events", "bytes"]
    identity: tuple[str, ...] = field(repr=False)
    provider_code: str | None = None

    def __post_init__(self) -> None:
        if self.tenant_kind not in TENANT_KINDS or not self.tenant_id or self.quantity_basis not in BASES:
            raise ValueError("An operation is of an organization or a personal tenant with an id, in events or bytes.")
        if not _is_tuple_of_texts(self.identity):
            raise ValueError("An operation needs an identity: a tuple of at least one text, and no empty part.")
        if not NAME.fullmatch(self.tool) or not NAME.fullmatch(self.dimension):
            raise ValueError("Tool and dimension are short lower-case names, fixed in the code.")
        if self.provider_code is not None and not PROVIDER.fullmatch(self.provider_code):
            raise ValueError("A provider code is a short lower-case name, fixed in the code.")

    @property
    def tenant_ref(self) -> str:
        """The tenant as billing knows it, `kind:id`."""
        return f"{self.tenant_kind}:{self.tenant_id}"

    def fingerprint(self, *, business: str) -> str:
        """The operation's identity in commercial facts, for the business code of this owner."""
        return keyed_hash("operation@1", business, self.tenant_ref, self.tool, self.dimension, *self.identity)


def _is_tuple_of_texts(parts: object) -> bool:
    """A text in its place would be taken for a tuple of its letters."""
    return isinstance(parts, tuple) and bool(parts) and all(isinstance(part, str) and part for part in parts)


def keyed_hash(*parts: str) -> str:
    """64 hex digits over all parts and their order, under the key; equal parts give equal digits in every process."""
    return _hmac(json.dumps(parts, separators=(",", ":")).encode())


def key_id() -> str:
    """Names the key without telling it."""
    return _named(settings.COMMERCIAL_HASH_KEY)


@lru_cache(maxsize=4)
def _named(key: str) -> str:
    return hmac.digest(key.encode(), b"the identity of this key", "sha256").hex()


def _hmac(data: bytes) -> str:
    return hmac.digest(settings.COMMERCIAL_HASH_KEY.encode(), data, "sha256").hex()

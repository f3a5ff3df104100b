"""Standard Webhooks: what is signed, how a secret is written, and which signatures of a header are good (C4, F1).

Signed is `id.timestamp.body` by HMAC-SHA256, over the bytes of the body as they came. An id may hold no full stop:
otherwise one signature would be good for two readings of the same bytes. The timestamp is that of the attempt.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from attachments.connectors.errors import InvalidSecret
from attachments.connectors.models.event import LONGEST_WEBHOOK_ID

PREFIX = "whsec_"
SECRET_BYTES = 32
FEWEST_BYTES, MOST_BYTES = 24, 64
"""Of a secret, as the specification has it."""
TOLERANCE = timedelta(seconds=300)
"""How far the clocks of sender and receiver may be apart, either way, this much included."""
MOST_SIGNATURES = 16
"""Signatures of one header that are looked at."""
ID = re.compile(rf"[\x21-\x2d\x2f-\x7e]{{1,{LONGEST_WEBHOOK_ID}}}")
SECONDS = re.compile(r"[1-9][0-9]{0,10}")


@dataclass(frozen=True, slots=True)
class Secret:
    """A signing secret. Its bytes never appear in a representation of it."""

    data: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> "Secret":
        """A new one."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    @classmethod
    def read(cls, text: str) -> "Secret":
        """The secret in its written form. Raises `InvalidSecret`, which holds no part of the text."""
        try:
            data = base64.b64decode(text.removeprefix(PREFIX).encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError):
            data = b""
        if not text.startswith(PREFIX) or not FEWEST_BYTES <= len(data) <= MOST_BYTES:
            raise InvalidSecret(InvalidSecret.__doc__)
        return cls(data)

    @property
    def text(self) -> str:
        """Its written form."""
        return PREFIX + base64.b64encode(self.data).decode()

    @property
    def sha256(self) -> str:
        """Tells whether two secrets are the same."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Signed:
    """One delivery attempt: what was signed, and the signatures it carries."""

    webhook_id: str
    seconds: int
    body: bytes = field(repr=False)
    signatures: tuple[bytes, ...] = field(repr=False, default=())

    @property
    def sent_at(self) -> datetime:
        """When the sender made this attempt."""
        return datetime.fromtimestamp(self.seconds, UTC)

    def is_near(self, now: datetime) -> bool:
        """Whether the attempt lies within the tolerance."""
        return abs(now - self.sent_at) <= TOLERANCE

    def is_signed_with(self, secret: Secret) -> bool:
        """Whether one of the signatures is that of this secret. Every one is compared, each in constant time."""
        content = b"%s.%d.%s" % (self.webhook_id.encode(), self.seconds, self.body)
        expected = hmac.digest(secret.data, content, "sha256")
        return sum(hmac.compare_digest(expected, signature) for signature in self.signatures) > 0


def read_signed(*, webhook_id: str, timestamp: str, signature: str, body: bytes) -> Signed | None:
    """The attempt behind the three headers; None if one is malformed. Unknown kinds of signature are skipped."""
    if not ID.fullmatch(webhook_id) or not SECONDS.fullmatch(timestamp):
        return None
    return Signed(webhook_id, int(timestamp), body, tuple(_signatures(signature)))


def _signatures(header: str) -> list[bytes]:
    found = []
    for part in header.split(" ", MOST_SIGNATURES)[:MOST_SIGNATURES]:
        kind, _, encoded = part.partition(",")
        if kind == "v1":
            try:
                found.append(base64.b64decode(encoded.encode("ascii"), validate=True))
            except (binascii.Error, UnicodeEncodeError):
                continue
    return found

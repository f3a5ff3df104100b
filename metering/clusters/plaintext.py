"""Make a token, and the hash under which it is kept."""

import hashlib
import secrets
from dataclasses import dataclass, field

SECRET_BYTES = 32
"""256 random bits: nothing that could be guessed, so a fast hash protects what is stored."""


@dataclass(frozen=True, slots=True)
class Plaintext:
    """A token as its holder shows it. Its text never appears in a representation of it."""

    text: str = field(repr=False)

    @classmethod
    def fresh(cls, *, prefix: str) -> "Plaintext":
        """A new one. The prefix lets a scanner of leaked secrets recognise it."""
        return cls(f"{prefix}_{secrets.token_urlsafe(SECRET_BYTES)}")

    @property
    def sha256(self) -> str:
        """What the database keeps of it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

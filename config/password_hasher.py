"""How passwords are stored: Django's own hasher, which leaves a stored password alone at login.

Django rehashes a password at login when its own work factor has grown. Login runs under a role that may write the time
of the last login and nothing else of a user, so `manage.py operator` does that instead, when the password is next set.
"""

from django.contrib.auth.hashers import PBKDF2PasswordHasher


class KeptPassword(PBKDF2PasswordHasher):
    """PBKDF2 with SHA-256; a login never rewrites what is stored."""

    def must_update(self, encoded: str) -> bool:
        return False

    def is_outdated(self, encoded: str) -> bool:
        """Whether the stored password was made with a smaller work factor than this release's."""
        return super().must_update(encoded)

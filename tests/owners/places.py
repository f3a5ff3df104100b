"""Other places for an owner's database than the one the tests use."""

import os

from config.databases import services

NOWHERE = "127.0.0.1:1"


def elsewhere(owner: str) -> dict[str, str]:
    """The environment of a process for which this owner's server is down; all others are where they were."""
    running = services()
    secret = os.environ.get("DATABASE_ROLE_SECRET") or (running.postgres_password if running else "")
    return {f"DATABASE_URL_{owner.upper()}": f"postgresql://{NOWHERE}/{owner}", "DATABASE_ROLE_SECRET": secret}

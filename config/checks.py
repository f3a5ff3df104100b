"""System checks of the roof: what the configuration would need is there."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db.backends.utils import CursorWrapper

from config.connections import Processes, most_per_server, server_of
from config.look import look_at
from config.owners import Owner, owner_of_alias

PATIENCE_SECONDS = 5.0
LIMIT = "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"


@register(Tags.database)
def connections_are_enough(
    app_configs: Any, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Every server accepts the sessions that the configured processes can open. `check --database NAME` runs it."""
    servers = {server_of(owner): owner for alias in databases or () for owner in [owner_of_alias(alias)]}
    needed = most_per_server(Processes.configured())
    found = look_at(list(servers.values()), _limit, patience=PATIENCE_SECONDS)
    messages: list[CheckMessage] = []
    for server, owner in servers.items():
        limit = found[owner.name].value
        if limit is not None and needed[server] > limit:
            messages.append(too_many(needed=needed[server], limit=limit, server=f"{server[0]}:{server[1]}"))
    return messages


def too_many(*, needed: int, limit: int, server: str) -> CheckMessage:
    """What is said when the sum is larger than the server's limit."""
    return Warning(
        f"The configured processes can open {needed} database sessions, but {server} accepts {limit}.",
        hint="Raise max_connections of the server, or lower WEB_PROCESSES, API_AT_ONCE, WORKER_PROCESSES or MACHINES.",
        id="config.W001",
    )


def _limit(_owner: Owner, cursor: CursorWrapper) -> int:
    cursor.execute(LIMIT)
    return int(cursor.fetchone()[0])

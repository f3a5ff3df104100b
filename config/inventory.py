"""What is where: every owner's server, database, migrations, logins, sessions and backlog, with servers down."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.utils import CursorWrapper

from config.connections import Processes, most, most_per_server, server_of
from config.databases import address_of
from config.look import gather, look_at, problem_of
from config.migrated import unapplied
from config.owners import OWNERS, Owner
from outbox import gauges

PATIENCE_SECONDS = 8.0
SESSIONS = "SELECT usename, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY usename"
LIMITS = "SELECT current_setting('max_connections')::int, (SELECT count(*) FROM pg_stat_activity)"


@dataclass(slots=True)
class Backlog:
    """What waits for one destination. `oldest_seconds` is the age of the oldest delivery that is not terminal."""

    destination: str
    state: str
    """`in_delivery`, or `awaiting_consumer` when this deployment binds none."""
    due: int = 0
    later: int = 0
    leased: int = 0
    awaiting_consumer: int = 0
    oldest_seconds: float = 0.0


@dataclass(slots=True)
class Login:
    """One LOGIN role. `problem` says why it cannot log in."""

    role: str
    name: str
    problem: str | None
    sessions: int
    most: int


@dataclass(slots=True)
class Place:
    """One owner's database. `problem` says why it could not be looked at; then only the address is known."""

    owner: str
    alias: str
    server: str
    database: str
    problem: str | None = None
    unapplied: dict[str, list[str]] = field(default_factory=dict)
    logins: list[Login] = field(default_factory=list)
    backlog: list[Backlog] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Reachable, migrated, and every role can log in."""
        return not self.problem and not self.unapplied and not any(login.problem for login in self.logins)


@dataclass(frozen=True, slots=True)
class Server:
    """One server: sessions in use, its limit, and what the configured processes can open."""

    server: str
    sessions: int | None
    max_connections: int | None
    configured: int

    @property
    def ok(self) -> bool:
        """The configuration fits, as far as the server could be asked."""
        return self.max_connections is None or self.configured <= self.max_connections


@dataclass(frozen=True, slots=True)
class _Found:
    unapplied: dict[str, list[str]]
    sessions: Counter[str]
    max_connections: int
    server_sessions: int
    backlog: list[Backlog]


def take_inventory() -> tuple[list[Place], list[Server]]:
    """Look at every owner and every role now. Never raises for what is wrong with a database."""
    seen = look_at(OWNERS, _look, patience=PATIENCE_SECONDS)
    logins = gather(
        {f"{owner.name} logins": partial(_try_logins, owner) for owner in OWNERS}, patience=PATIENCE_SECONDS
    )
    processes = Processes.configured()
    places = []
    limits: dict[tuple[str, int], tuple[int, int]] = {}
    for owner in OWNERS:
        found, problem = seen[owner.name].value, seen[owner.name].problem
        tried = logins[f"{owner.name} logins"]
        place = Place(owner.name, owner.alias, _text(server_of(owner)), address_of(owner).name, problem)
        if found is not None:
            place.unapplied, place.backlog = found.unapplied, found.backlog
            limits[server_of(owner)] = (found.server_sessions, found.max_connections)
        for role, largest in most(owner, processes).items():
            name = owner.role_name(role)
            reason = (tried.value or {}).get(str(role)) if tried.problem is None else tried.problem
            place.logins.append(Login(str(role), name, reason, found.sessions[name] if found else 0, largest))
        places.append(place)
    servers = []
    for server, configured in most_per_server(processes).items():
        sessions, limit = limits.get(server, (None, None))
        servers.append(Server(_text(server), sessions, limit, configured))
    return places, servers


def _text(server: tuple[str, int]) -> str:
    return f"{server[0]}:{server[1]}"


def _look(owner: Owner, cursor: CursorWrapper) -> _Found:
    missing = unapplied(owner, cursor)
    cursor.execute(SESSIONS)
    sessions = Counter({user: count for user, count in cursor.fetchall() if user})
    cursor.execute(LIMITS)
    limit, used = cursor.fetchone()
    backlog = _backlog(owner, cursor) if owner.produces and "outbox" not in missing else []
    return _Found(missing, sessions, limit, used, backlog)


def _backlog(owner: Owner, cursor: CursorWrapper) -> list[Backlog]:
    found: dict[str, Backlog] = {}
    for sample in gauges.backlog(owner, cursor):
        _, destination, *state = sample.labels
        entry = found.setdefault(destination, Backlog(destination, "in_delivery"))
        if sample.name == "outbox_pending":
            setattr(entry, state[0], int(sample.value))
        elif sample.name == "outbox_oldest_pending_seconds":
            entry.state, entry.oldest_seconds = state[0], round(sample.value, 1)
    return list(found.values())


def _try_logins(owner: Owner) -> dict[str, str | None]:
    """Role to why it cannot log in, or None."""
    tried: dict[str, str | None] = {}
    for role in owner.roles:
        connection = connections[owner.alias_of(role)]
        try:
            connection.ensure_connection()
            tried[str(role)] = None
        except Exception as error:  # the next role is tried whatever this one's trouble is
            tried[str(role)] = problem_of(error)
        finally:
            connection.close()
    return tried


def as_json(places: list[Place], servers: list[Server]) -> dict[str, Any]:
    """The whole inventory as JSON values."""
    return {
        "ok": all(place.ok for place in places) and all(server.ok for server in servers),
        "owners": [{**asdict(place), "ok": place.ok} for place in places],
        "servers": [{**asdict(server), "ok": server.ok} for server in servers],
    }

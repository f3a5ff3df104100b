"""THE table: who owns which database, under which roles, what it produces, and which consumers live there.

The router, the migrations, the dispatch schedule, the admin, the metrics, the embedded services and the tests
all read it. It imports nothing of the project, so that anyone may import it. (House: rooms, databases.)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The LOGIN roles of one owner's database. Each has its own Django alias and its own credentials."""

    OWNER = "owner"
    """Writes the owner's facts and appends events. Alias: the owner's own."""
    SCHEMA = "schema"
    """Owns tables and functions. Migrations and test cleaning only."""
    DISPATCH = "dispatch"
    """Claims, settles and quarantines deliveries; executes the controlled functions. Producers only."""
    READ = "read"
    """Selects, and nothing else. The admin and the metrics read through it."""
    SESSION = "session"
    """Writes login sessions and the time of the last login, and nothing else. Core only."""
    JOURNAL = "journal"
    """Writes what is about to happen outside the database, committed beside the business transaction, and asks its
    markers how that ended. Owners with a journal only."""


@dataclass(frozen=True, slots=True)
class Consumer:
    """One active consumer (O20). `handler` is the dotted path of its callable, or None while none is bound."""

    destination: str
    name: str
    handler: str | None


@dataclass(frozen=True, slots=True)
class Owner:
    """One owner of facts and its one database."""

    name: str
    alias: str
    apps: tuple[str, ...]
    """Labels of the Django apps whose tables live here."""
    events: tuple[str, ...] = ()
    """Event types that only this owner may append; an owner with any has an outbox in its database."""
    consumers: tuple[Consumer, ...] = ()
    has_sessions: bool = False
    stages_rows: bool = False
    """Whether its owner role may make temporary tables, through which rows are loaded in bulk."""
    extensions: tuple[str, ...] = ()
    """Extensions that its database gets where the server has loaded them."""
    has_markers: bool = False
    """Whether its business code reserves quota: the markers of its transactions are in its database."""
    has_journal: bool = False
    """Whether its business code changes something outside its database, and keeps a journal of that."""

    @property
    def produces(self) -> bool:
        """Whether the owner's database holds an outbox."""
        return bool(self.events)

    @property
    def app_labels(self) -> frozenset[str]:
        """Labels of all apps whose tables are in its database: its own, and those placed with several owners."""
        return frozenset(
            (*self.apps, *(("outbox",) if self.produces else ()), *(("markers",) if self.has_markers else ()))
        )

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles this owner's database has, in the order in which they are created."""
        roles = [Role.SCHEMA, Role.OWNER, Role.READ]
        if self.produces:
            roles.append(Role.DISPATCH)
        if self.has_sessions:
            roles.append(Role.SESSION)
        if self.has_journal:
            roles.append(Role.JOURNAL)
        return tuple(roles)

    def alias_of(self, role: Role) -> str:
        """The Django connection alias of `role`: `billing`, `billing.schema`, `billing.dispatch`, `billing.read`."""
        return self.alias if role is Role.OWNER else f"{self.alias}.{role}"

    def role_name(self, role: Role) -> str:
        """The PostgreSQL LOGIN role: `billing_owner`, `billing_schema`, …"""
        return f"{self.name}_{role}"

    @property
    def queue(self) -> str:
        """The Celery queue on which this owner's work runs."""
        return f"owner.{self.name}"

    @property
    def dispatch_alias(self) -> str:
        return self.alias_of(Role.DISPATCH)

    @property
    def read_alias(self) -> str:
        return self.alias_of(Role.READ)

    @property
    def schema_alias(self) -> str:
        return self.alias_of(Role.SCHEMA)


OWNERS: tuple[Owner, ...] = (
    Owner(
        name="core",
        alias="default",
        apps=("contenttypes", "auth", "sessions", "admin", "admission", "projector", "timelines"),
        events=("run.created@2.0", "wallet.reserved@2.0"),
        consumers=(Consumer("core_operations", "operations_projector", "operations.projector.consumer.consume"),),
        has_sessions=True,
    ),
    Owner(
        name="execution",
        alias="execution",
        apps=(),
        events=("execution.attempt-eligibility.finalized@1", "execution.run-finalization.closed@1"),
    ),
    Owner(name="gateway", alias="gateway", apps=(), events=("gateway.evidence-availability.current-changed@1",)),
    Owner(
        name="metering",
        alias="metering",
        apps=("clusters",),
        events=("metering.settlement-input.current-changed@1",),
        consumers=(Consumer("metering_input_processor", "metering_input_processor_consumer", None),),
    ),
    Owner(
        name="billing",
        alias="billing",
        apps=("ledger", "pricing", "finalization", "telemetry_charges", "commercial"),
        events=(
            "billing.finalization.committed@1",
            "billing.settlement-transition.committed@1",
            "billing.late-settlement-exposure.case-requested@1",
            "billing.case-resolution.applied@1",
            "billing.late-settlement-command-result.committed@1",
            "billing.finalization-reconciliation.case-requested@1",
            "billing.finalization-reconciliation-resolution.applied@1",
        ),
        consumers=(
            Consumer("billing_finalization_coordinator", "billing_finalization_coordinator_consumer", None),
            Consumer("billing_settlement_catch_up", "billing_settlement_catch_up_consumer", None),
        ),
    ),
    Owner(
        name="attachments",
        alias="attachments",
        apps=("files", "claims", "connectors"),
        has_markers=True,
        has_journal=True,
    ),
    Owner(
        name="telemetry",
        alias="telemetry",
        apps=("otlp", "consumption"),
        stages_rows=True,
        extensions=("timescaledb",),
    ),
)
"""`outbox` is placed in the database of every owner that produces, `markers` in that of every owner whose business code
reserves quota; so they stand in no `apps`."""


def producers() -> tuple[Owner, ...]:
    """The owners whose databases hold an outbox, in table order."""
    return tuple(owner for owner in OWNERS if owner.produces)


def with_markers() -> tuple[Owner, ...]:
    """The owners whose business code reserves quota, in table order."""
    return tuple(owner for owner in OWNERS if owner.has_markers)


def owner_named(name: str) -> Owner:
    """The owner called `name`. Raises `LookupError` that lists the names there are."""
    for owner in OWNERS:
        if owner.name == name:
            return owner
    raise LookupError(f"There is no owner {name!r}. Owners: {', '.join(o.name for o in OWNERS)}.")


def producer_of(event_type: str) -> Owner | None:
    """The one owner that may append this event type, or None if no owner names it."""
    return next((owner for owner in OWNERS if event_type in owner.events), None)


def owner_of_app(app_label: str) -> Owner | None:
    """The owner in whose database the app's tables live; None for those placed with several, and without tables."""
    return next((owner for owner in OWNERS if app_label in owner.apps), None)


def owner_of_alias(alias: str) -> Owner:
    """The owner behind any of its aliases. Raises `LookupError` for an alias the table does not hold."""
    for owner, role in owner_roles():
        if owner.alias_of(role) == alias:
            return owner
    raise LookupError(f"No owner has the database alias {alias!r}. See `manage.py owners`.")


def owner_roles() -> Iterator[tuple[Owner, Role]]:
    """Every (owner, role) there is."""
    for owner in OWNERS:
        for role in owner.roles:
            yield owner, role


def consumers() -> Iterator[tuple[Owner, Consumer]]:
    """Every consumer with the owner whose database it writes."""
    for owner in OWNERS:
        for consumer in owner.consumers:
            yield owner, consumer


def consumer_for(destination: str) -> tuple[Owner, Consumer] | None:
    """The consumer of `destination` and its owner, or None if no owner names that destination."""
    return next((pair for pair in consumers() if pair[1].destination == destination), None)

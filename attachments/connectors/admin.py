"""Connectors, secrets, acts, events and conflicts, to be read. No page reads a payload, a sealed secret or its hash.

What a sender calls an event is not shown either; who has it in hand finds the event by it.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from attachments.connectors.models import (
    Connector,
    ConnectorAct,
    ConnectorConflict,
    ConnectorEvent,
    ConnectorSecret,
    SecretState,
)
from config.readonly_admin import SECTIONS, Code, Filter, Link, Option, ReadOnlyAdmin, State, Table, state_of

LATEST = 20
"""Secrets, acts and events that the page of a connector shows."""
GROUP = "Connectors"
ACCEPTED = State("active", "Accepted", "What is signed with it is let in")
REFUSED = State("ended", "Refused", "What is signed with it is answered 401")


def _with_id(field: str, what: str) -> Callable[[ReadOnlyAdmin, str], Option | None]:
    """A filter that another page links to: by the id of what the rows belong to."""

    def find(pages: ReadOnlyAdmin, value: str) -> Option | None:
        try:
            return Option(value, f"{what} {value}", Q(**{field: UUID(value)}))
        except ValueError:
            return None

    return find


class _OfConnector(ReadOnlyAdmin):
    """What the pages of this room share: rows without the columns that no page reads, and the way to a connector."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return self.of_all()

    def of_all(self) -> QuerySet[Any]:
        """Every row, without what is deferred."""
        rows: QuerySet[Any] = self.model._default_manager.using(self.alias).defer(*self.deferred)
        return rows

    @admin.display(description="connector")
    def of_connector(self, row: Any) -> Link:
        return Link(Code(str(row.connector_id), short=True), self.sibling(Connector).url_of_key(row.connector_id))

    @admin.display(description="signed with")
    def signed_with(self, row: Any) -> Link:
        return Link(Code(str(row.secret_id), short=True), self.sibling(ConnectorSecret).url_of_key(row.secret_id))


class ConnectorAdmin(_OfConnector):
    slug = "connectors"
    label = "Connectors"
    group = GROUP
    position = 40
    about = "Who delivers financial events, and to which tenant they belong. A connector never changes."
    order = ("-connector_id",)
    lookups = ("connector_id", "name")
    deferred = ("candidate",)
    list_display = ("connector_id", "name", "tenant", "provider_code", "created_at")
    headings = {"connector_id": "Connector", "provider_code": "Provider"}
    fieldsets = (("Connector", {"fields": ("name", "tenant", "provider_code", "created_at", "digest")}),)

    @admin.display(description="tenant")
    def tenant(self, row: Connector) -> Code:
        return Code(f"{row.tenant_kind}:{row.tenant_id}")

    def title_of(self, row: Connector) -> str:
        return f"Connector {row.name}"

    def tables(self, row: Connector) -> list[Table]:
        return [
            self._latest(ConnectorSecret, row, "-secret_id", "Latest secrets", "It has no secret."),
            self._latest(ConnectorEvent, row, "-event_id", "Latest events", "It delivered nothing yet."),
            self._latest(ConnectorAct, row, "-act_id", "What was done to it", "Nothing."),
        ]

    def beside_row(self, row: Connector, request: HttpRequest) -> dict[str, Any]:
        url = self.sibling(ConnectorEvent).list_url(connector=str(row.connector_id))
        return {"more": ("All events of this connector", url)}

    def _latest(self, model: Any, row: Connector, order: str, title: str, empty: str) -> Table:
        pages: Any = self.sibling(model)
        rows = pages.of_all().filter(connector_id=row.connector_id).order_by(order)[:LATEST]
        table: Table = pages.table(list(rows), title=title, empty=empty)
        return table


class SecretAdmin(_OfConnector):
    slug = "connector-secrets"
    label = "Secrets"
    group = GROUP
    position = 41
    about = "Secrets with which providers sign, newest first. A secret itself is seen once, by whoever made it."
    order = ("-secret_id",)
    filters = (Filter("connector", "Connector", find=_with_id("connector_id", "connector")),)
    lookups = ("secret_id",)
    deferred = ("sealed", "secret_sha256")
    list_display = ("secret_id", "of_connector", "state", "now", "issued_at", "expires_at")
    headings = {"secret_id": "Secret"}
    fieldsets = (
        ("Secret", {"fields": ("of_connector", "state", "now", "key_name")}),
        ("Time", {"fields": ("issued_at", "superseded_at", "expires_at", "revoked_at")}),
    )

    def now(self, row: ConnectorSecret) -> State:
        is_over = row.expires_at is not None and timezone.now() >= row.expires_at
        return REFUSED if is_over or row.state == SecretState.REVOKED else ACCEPTED

    @admin.display(description="sealed with")
    def key_name(self, row: ConnectorSecret) -> Code:
        return Code(row.sealed_with, short=True)

    def title_of(self, row: ConnectorSecret) -> str:
        return f"{state_of(SecretState, row.state).label} secret {row.secret_id}"

    def tables(self, row: ConnectorSecret) -> list[Table]:
        acts: Any = self.sibling(ConnectorAct)
        return [acts.table(list(acts.of_all().filter(secret_id=row.pk).order_by("-act_id")), title="What was done")]


class EventAdmin(_OfConnector):
    slug = "connector-events"
    label = "Events"
    group = GROUP
    position = 42
    about = "Accepted events, latest first: each is counted once, however often it was delivered."
    order = ("-event_id",)
    filters = (Filter("connector", "Connector", find=_with_id("connector_id", "connector")),)
    lookups = ("event_id", "webhook_id")
    deferred = ("body", "webhook_id")
    list_display = ("event_id", "of_connector", "body_bytes", "accepted_at", "sent_at")
    headings = {"event_id": "Event", "body_bytes": "Bytes", "body_sha256": "Digest of the payload"}
    fieldsets = (
        ("Event", {"fields": ("of_connector", "body_bytes", "body_sha256", "signed_with")}),
        ("Time", {"fields": ("sent_at", "accepted_at")}),
    )

    def title_of(self, row: ConnectorEvent) -> str:
        return f"Event {row.event_id}"

    def tables(self, row: ConnectorEvent) -> list[Table]:
        pages = self.sibling(ConnectorConflict)
        found = ConnectorConflict.objects.using(self.alias).filter(event_id=row.pk).order_by("-conflict_id")[:LATEST]
        return [pages.table(list(found), title="Other payloads under its id", empty="None was sent.")]


class ConflictAdmin(_OfConnector):
    slug = "connector-conflicts"
    label = "Conflicts"
    group = GROUP
    position = 43
    about = "Other payloads that were sent under the id of an accepted event, latest first. None of them is kept."
    order = ("-conflict_id",)
    lookups = ("conflict_id",)
    list_display = ("conflict_id", "of_event", "body_bytes", "seen_at", "sent_at")
    headings = {"conflict_id": "Conflict", "body_bytes": "Bytes", "body_sha256": "Digest of the payload"}
    fieldsets = (
        ("Conflict", {"fields": ("of_event", "body_bytes", "body_sha256", "signed_with")}),
        ("Time", {"fields": ("sent_at", "seen_at")}),
    )

    @admin.display(description="event")
    def of_event(self, row: ConnectorConflict) -> Link:
        return Link(Code(str(row.event_id), short=True), self.sibling(ConnectorEvent).url_of_key(row.event_id))

    def title_of(self, row: ConnectorConflict) -> str:
        return f"Conflict {row.conflict_id}"


class ActAdmin(_OfConnector):
    slug = "connector-acts"
    label = "Acts"
    group = GROUP
    position = 44
    about = "What was done to connectors and their secrets, latest first. Nothing here ever changes."
    order = ("-act_id",)
    filters = (Filter("connector", "Connector", find=_with_id("connector_id", "connector")),)
    list_display = ("at", "kind", "actor", "of_connector", "of_secret")
    fieldsets = (("Act", {"fields": ("kind", "of_connector", "of_secret", "actor", "at")}),)

    @admin.display(description="secret")
    def of_secret(self, row: ConnectorAct) -> Link | None:
        return self.signed_with(row) if row.secret_id else None


PAGES: Sequence[tuple[Any, type[ReadOnlyAdmin]]] = (
    (Connector, ConnectorAdmin),
    (ConnectorSecret, SecretAdmin),
    (ConnectorEvent, EventAdmin),
    (ConnectorConflict, ConflictAdmin),
    (ConnectorAct, ActAdmin),
)
for model, pages in PAGES:
    SECTIONS["attachments"].register(model, pages)

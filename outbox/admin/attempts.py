"""Attempts: each start with its one finish, and failures apart."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from config.readonly_admin import Code, Lines, Link, ReadOnlyAdmin, Span, State, Table, state_of
from outbox.models import (
    DeliveryAttemptFinish,
    DeliveryAttemptStart,
    Disposition,
    OutboxDelivery,
    Outcome,
)

HISTORY = 200
"""Attempts that the page of one delivery shows; a delivery that needed more is shown from its first one."""
OPEN = State("in-work", "in work", "Started, not finished: a worker holds it, or its lease has run out unseen.")


def finish_of(row: DeliveryAttemptStart) -> DeliveryAttemptFinish | None:
    """The finish that was joined to the start, if there is one."""
    return getattr(row, "finish", None)


class AttemptAdmin(ReadOnlyAdmin):
    slug = "attempts"
    label = "Attempts"
    group = "Outbox"
    position = 30
    about = "Every attempt of every delivery, newest events first; an attempt is one start and at most one finish."
    order = ("-event_id", "-destination", "-lease_token")
    lookups = ("event_id",)
    related = ("finish",)
    list_display = ("delivery", "attempt_no", "started_at", "took", "end", "error_code", "lease_owner")
    headings = {"attempt_no": "No.", "started_at": "Started", "lease_owner": "Worker", "lease_token": "Fencing token"}
    fieldsets = (
        ("Attempt", {"fields": ("attempt_id", "delivery", "destination", "attempt_no", "lease_token", "lease_owner")}),
        ("Start and finish", {"fields": ("started_at", "finished_at", "took", "outcome", "then", "retry_class")}),
        ("Error", {"fields": ("error_code", "error_text")}),
    )

    @admin.display(description="outcome")
    def end(self, row: DeliveryAttemptStart) -> Any:
        followed = " · ".join(filter(None, (self.then(row), self.retry_class(row))))
        return Lines(self.outcome(row), followed or "no finish yet")

    @admin.display(description="delivery")
    def delivery(self, row: DeliveryAttemptStart) -> Any:
        return Link(
            Lines(row.event_id, f"to {row.destination}"),
            self.sibling(OutboxDelivery).url_of_key(row.event_id, row.destination),
        )

    @admin.display(description="took")
    def took(self, row: DeliveryAttemptStart) -> Span:
        finish = finish_of(row)
        return Span(row.started_at, finish.finished_at if finish else None)

    @admin.display(description="finished at")
    def finished_at(self, row: DeliveryAttemptStart) -> Any:
        finish = finish_of(row)
        return finish.finished_at if finish else None

    @admin.display(description="outcome")
    def outcome(self, row: DeliveryAttemptStart) -> State:
        finish = finish_of(row)
        return state_of(Outcome, finish.outcome) if finish else OPEN

    @admin.display(description="then")
    def then(self, row: DeliveryAttemptStart) -> Any:
        finish = finish_of(row)
        return state_of(Disposition, finish.retry_disposition).label if finish else None

    @admin.display(description="retry class")
    def retry_class(self, row: DeliveryAttemptStart) -> str | None:
        finish = finish_of(row)
        return finish.retry_class if finish else None

    @admin.display(description="error")
    def error_code(self, row: DeliveryAttemptStart) -> Code | None:
        finish = finish_of(row)
        return Code(finish.normalized_error_code) if finish and finish.normalized_error_code else None

    @admin.display(description="error")
    def error(self, row: DeliveryAttemptStart) -> Lines | None:
        code = self.error_code(row)
        return Lines(code, self.error_text(row)) if code else None

    @admin.display(description="sanitised error")
    def error_text(self, row: DeliveryAttemptStart) -> str | None:
        finish = finish_of(row)
        return finish.sanitized_error_ref if finish else None

    def title_of(self, row: DeliveryAttemptStart) -> str:
        return f"Attempt {row.attempt_no} to {row.destination}"

    def history(self, rows: Sequence[DeliveryAttemptStart], *, total: int) -> Table:
        """The attempts of one delivery in their order."""
        names = ("started_at", "took", "end", "error", "lease_owner")
        cells = tuple(
            (Link(row.attempt_no, self.url_of(row)), *(self.cell(row, name) for name in names))
            for row in rows[:HISTORY]
        )
        headings = ("No.", "Started", "Took", "Outcome, and what followed", "Error", "Worker")
        note = f"the first {HISTORY} of {total:,}" if len(rows) > HISTORY else ""
        return Table("Attempts", headings, cells, "No attempt was started.", note)


class FailureAdmin(ReadOnlyAdmin):
    slug = "failures"
    label = "Failures"
    group = "Outbox"
    position = 40
    about = "Attempts that did not end in an acknowledgement, latest first."
    order = ("-finished_at", "-attempt_id")
    related = ("attempt",)
    list_display = ("delivery", "number", "finished_at", "end", "error_code", "text")
    headings = {"finished_at": "Finished"}
    fieldsets = (
        ("Failure", {"fields": ("delivery", "destination", "number", "finished_at", "outcome", "then", "retry_class")}),
        ("Error", {"fields": ("error_code", "text")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[DeliveryAttemptFinish]:
        return super().get_queryset(request).filter(~Q(outcome=Outcome.ACKNOWLEDGED))

    @admin.display(description="outcome")
    def end(self, row: DeliveryAttemptFinish) -> Lines:
        then = f"{self.then(row)} · {row.retry_class}" if row.retry_class else self.then(row)
        return Lines(state_of(Outcome, row.outcome), then)

    @admin.display(description="delivery")
    def delivery(self, row: DeliveryAttemptFinish) -> Link:
        start = row.attempt
        return Link(
            Lines(start.event_id, f"to {start.destination}"),
            self.sibling(OutboxDelivery).url_of_key(start.event_id, start.destination),
        )

    @admin.display(description="destination")
    def destination(self, row: DeliveryAttemptFinish) -> str:
        return row.attempt.destination

    @admin.display(description="attempt")
    def number(self, row: DeliveryAttemptFinish) -> Link:
        return Link(row.attempt.attempt_no, self.sibling(DeliveryAttemptStart).url_of_key(row.attempt_id))

    @admin.display(description="then")
    def then(self, row: DeliveryAttemptFinish) -> str:
        return state_of(Disposition, row.retry_disposition).label

    @admin.display(description="error")
    def error_code(self, row: DeliveryAttemptFinish) -> Code | None:
        return Code(row.normalized_error_code) if row.normalized_error_code else None

    @admin.display(description="sanitised error")
    def text(self, row: DeliveryAttemptFinish) -> str | None:
        return row.sanitized_error_ref

    def title_of(self, row: DeliveryAttemptFinish) -> str:
        return f"Failure of attempt {row.attempt.attempt_no} to {row.attempt.destination}"

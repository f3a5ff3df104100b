"""The journal of the stored tree, to be read: what is open, what ended how. It holds ids and lengths, no content."""

from collections.abc import Sequence

from django.contrib import admin
from django.db.models import Q

from attachments.files.models import FileIntent, IntentState
from config.readonly_admin import SECTIONS, Code, Filter, Lines, Link, Option, ReadOnlyAdmin, Span

DEPTHS = {2: "everything of a claim", 3: "everything of an item", 4: "one content"}
"""What a path of so many ids is."""


def _queues(pages: ReadOnlyAdmin) -> Sequence[Option]:
    return [Option("open", "open", Q(state=IntentState.OPEN), ("folder", "sequence"))]


class FileIntentAdmin(ReadOnlyAdmin):
    slug = "staged-files"
    label = "Staged files"
    group = "Files"
    position = 30
    about = (
        "Changes of the stored tree, latest first. An open one is at work, or waits for the sweep; one with failures"
        " keeps its backup, and the runbook page FilesNotEnded says what to do."
    )
    order = ("-sequence",)
    filters = (Filter("queue", "Show", _queues),)
    lookups = ("intent_id",)
    list_display = ("intent_id", "state", "action", "what", "replaces", "failed", "written_at", "ended")
    headings = {
        "intent_id": "Change",
        "written_at": "Written",
        "ended_at": "Ended",
        "size_bytes": "Length",
        "transaction_id": "Transaction",
    }
    fieldsets = (
        ("Change", {"fields": ("intent_id", "state", "action", "stored_path", "replaces", "size_bytes")}),
        ("Decided by", {"fields": ("marker", "transaction_id")}),
        ("Time", {"fields": ("written_at", "ended_at", "ended_by", "open_for")}),
        ("Failures", {"fields": ("failures", "last_failure")}),
    )

    @admin.display(description="what")
    def what(self, row: FileIntent) -> Lines:
        ids = row.path.split("/")
        return Lines(ids[-1], DEPTHS[len(ids)])

    @admin.display(description="path")
    def stored_path(self, row: FileIntent) -> Code:
        return Code(row.path)

    @admin.display(description="failures")
    def failed(self, row: FileIntent) -> Lines | None:
        return Lines(row.failures, row.last_failure or "") if row.failures else None

    @admin.display(description="ended")
    def ended(self, row: FileIntent) -> Lines | None:
        if row.ended_at is None or row.ended_by is None:
            return None
        return Lines(row.ended_at, f"by {row.ended_by}")

    @admin.display(description="marker")
    def marker(self, row: FileIntent) -> Link | Code:
        """What was taken back may have no marker."""
        if row.state != IntentState.KEPT:
            return Code(str(row.marker_id))
        return Link(row.marker_id, SECTIONS["attachments"].row_url("markers", row.marker_id, 1))

    @admin.display(description="open for")
    def open_for(self, row: FileIntent) -> Span:
        return Span(row.written_at, row.ended_at)

    def title_of(self, row: FileIntent) -> str:
        return f"Change {row.intent_id}"


SECTIONS["attachments"].register(FileIntent, FileIntentAdmin)

"""Find operations and unlinked reservations by any exact id, through the projector's identifier index (O26)."""

from config.readonly_admin import SECTIONS, Link, Table
from operations.timelines.models import OperationSummary, PendingUnlinkedReservation
from operations.timelines.reads import Hit, search


def find_operations(alias: str, text: str) -> list[Table]:
    """What the id leads to in the active projection, in one statement on the index."""
    found = search(text, using=alias)
    rows = dict.fromkeys((_link(hit), _what(hit), hit.kind.label, hit.projection_version) for hit in found.hits)
    if not rows:
        return []
    title = "Operations (the first of them)" if found.more else "Operations"
    return [Table(title, ("Leads to", "What it is", "Found as", "Projection"), tuple(rows))]


def _link(hit: Hit) -> Link:
    model = OperationSummary if hit.operation_id else PendingUnlinkedReservation
    pages = SECTIONS["core"]._registry[model]
    subject = hit.operation_id or hit.event_id
    return Link(subject, pages.url_of_key(subject, hit.projection_version))  # type: ignore[attr-defined]  # ReadOnlyAdmin


def _what(hit: Hit) -> str:
    return "Operation" if hit.operation_id else f"Unlinked reservation, {hit.unlinked_state}"

"""Find operations and unlinked reservations by any exact id, for the one search box of the operators."""

from config.readonly_admin import SECTIONS, Link, State, Table, state_of
from operations.timelines.models import IdentifierKind, LinkState
from operations.timelines.reads import Hit, search


def find_operations(alias: str, text: str) -> list[Table]:
    """What the id leads to, in one statement on the projector's index."""
    found = search(text, using=alias)
    rows = tuple(_row(hit) for hit in found.hits)
    note = "the first of many" if found.more else ""
    return [Table("Operations", ("Leads to", "Found as", "State"), rows, note=note)] if rows else []


def _row(hit: Hit) -> tuple[object, ...]:
    section, found_as = SECTIONS["core"], state_of(IdentifierKind, hit.kind).label
    if hit.operation_id is not None:
        return (
            Link(hit.operation_id, section.row_url("operations", hit.operation_id)),
            found_as,
            State("linked", "operation"),
        )
    state = state_of(LinkState, hit.unlinked_state) if hit.unlinked_state else None
    return Link(f"unlinked reservation {hit.event_id}", section.row_url("unlinked", hit.event_id)), found_as, state

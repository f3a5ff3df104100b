"""State diagrams in the documentation, written from the transition tables in the code.

A page holds `<!-- generated: NAME -->` … `<!-- end -->`; what stands between is replaced. `manage.py diagrams` writes,
`manage.py diagrams --check` and a test compare.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from django.utils.module_loading import import_string

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Diagram:
    """Where a diagram stands, which table it shows, and what creates the first state."""

    name: str
    page: str
    table: str
    created_by: str


DIAGRAMS: tuple[Diagram, ...] = (
    Diagram("delivery-states", "outbox/README.md", "outbox.models.delivery.TRANSITIONS", "append"),
    Diagram("delivery-set-states", "outbox/README.md", "outbox.models.delivery_set.TRANSITIONS", "register"),
    Diagram("charge-states", "metering/consumption/README.md", "metering.consumption.models.TRANSITIONS", "sum up"),
    Diagram("reservation-states", "billing/README.md", "billing.finalization.models.TRANSITIONS", "reserve"),
    Diagram("claim-states", "attachments/claims/README.md", "attachments.claims.models.TRANSITIONS", "begin"),
    Diagram("staged-file-states", "attachments/files/README.md", "attachments.files.models.TRANSITIONS", "write down"),
    Diagram("otlp-token-states", "metering/clusters/README.md", "metering.clusters.models.TRANSITIONS", "rotate"),
)


class MarkMissing(LookupError):
    """The page lacks the marks between which the diagram stands. Add `<!-- generated: NAME -->` and `<!-- end -->`."""


def render(diagram: Diagram) -> str:
    """The Mermaid text of one diagram; states in the order of the table, terminal ones marked."""
    table: Mapping[Enum, Mapping[Enum, str]] = import_string(diagram.table)
    states = list(table)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {states[0].value}: {diagram.created_by}"]
    lines += [
        f"    {state.value} --> {following.value}: {step}"
        for state, steps in table.items()
        for following, step in steps.items()
    ]
    lines += [f"    {state.value} --> [*]" for state, steps in table.items() if not steps]
    return "\n".join([*lines, "```"])


def with_diagrams(page: str) -> str:
    """The text of a page with all its diagrams as the tables say. Raises `MarkMissing`."""
    text = (ROOT / page).read_text()
    for diagram in DIAGRAMS:
        if diagram.page == page:
            marks = re.compile(rf"(<!-- generated: {diagram.name} -->\n).*?(<!-- end -->)", re.DOTALL)
            if not marks.search(text):
                raise MarkMissing(f"{page}, {diagram.name}: {MarkMissing.__doc__}")
            text = marks.sub(_between(render(diagram)), text)
    return text


def _between(body: str) -> Callable[[re.Match[str]], str]:
    return lambda found: f"{found[1]}{body}\n{found[2]}"


def pages() -> list[str]:
    """Every page that holds a diagram."""
    return sorted({diagram.page for diagram in DIAGRAMS})

"""The read-only admin: one base class for every page, one section per owner. Imports nothing of the project's apps."""

from config.readonly_admin.admin import Filter, Option, ReadOnlyAdmin, key_text
from config.readonly_admin.site import SECTIONS, OperatorSite, OwnerSection
from config.readonly_admin.values import (
    Age,
    Amount,
    Code,
    Document,
    Lines,
    Link,
    Part,
    Reference,
    Share,
    Span,
    State,
    Table,
    state_of,
)

__all__ = [
    "SECTIONS",
    "Age",
    "Amount",
    "Code",
    "Document",
    "Filter",
    "Lines",
    "Link",
    "OperatorSite",
    "Option",
    "OwnerSection",
    "Part",
    "ReadOnlyAdmin",
    "Reference",
    "Share",
    "Span",
    "State",
    "Table",
    "key_text",
    "state_of",
]

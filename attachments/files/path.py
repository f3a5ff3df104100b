"""Where a file is stored: a path made of ids, so that no name that a user chose ever reaches a disk (F6)."""

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from attachments.files.errors import NotAnId

SHORTEST, LONGEST = 2, 4
"""A claim's folder is the largest thing that is removed at once; an attachment is the smallest."""


@dataclass(frozen=True, slots=True)
class StoredPath:
    """The ids of tenant and claim, then perhaps of item and attachment. Raises `NotAnId`."""

    ids: tuple[UUID, ...]

    def __post_init__(self) -> None:
        if not SHORTEST <= len(self.ids) <= LONGEST or not all(isinstance(one, UUID) for one in self.ids):
            raise NotAnId(NotAnId.__doc__)

    @classmethod
    def of(
        cls, tenant_id: UUID, claim_id: UUID, item_id: UUID | None = None, attachment_id: UUID | None = None
    ) -> "StoredPath":
        """The path of an attachment; without the last id or the last two, the folder of an item or of a claim."""
        if item_id is None and attachment_id is not None:
            raise NotAnId(NotAnId.__doc__)
        return cls(tuple(one for one in (tenant_id, claim_id, item_id, attachment_id) if one is not None))

    @classmethod
    def parse(cls, text: str) -> "StoredPath":
        """The path whose `text` this is."""
        try:
            path = cls(tuple(UUID(part) for part in text.split("/")))
        except ValueError as error:
            raise NotAnId(NotAnId.__doc__) from error
        if path.text != text:
            raise NotAnId(NotAnId.__doc__)
        return path

    @property
    def text(self) -> str:
        """The ids in their canonical form, divided by slashes: the same in the journal and below the root."""
        return "/".join(str(one) for one in self.ids)

    @property
    def folder(self) -> str:
        """Tenant and claim: changes below one folder are written down one after the other."""
        return "/".join(str(one) for one in self.ids[:SHORTEST])

    def overlaps(self, other: "StoredPath") -> bool:
        """Whether one of them is the other, or lies below it."""
        shared = min(len(self.ids), len(other.ids))
        return self.ids[:shared] == other.ids[:shared]

    def below(self, root: Path) -> Path:
        """Where it is on disk."""
        return root.joinpath(*(str(one) for one in self.ids))

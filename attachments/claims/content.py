"""Open the file of an attachment as the committed row names it.

Each content has a path of its own, so what is opened is never another content than the row's. While it is being
replaced or deleted its file may have gone aside before that is committed; then the caller is told to come back.
"""

from typing import BinaryIO
from uuid import UUID

from attachments.claims.access import find_attachment, find_claim
from attachments.claims.errors import ContentAway
from attachments.claims.models import Attachment
from attachments.claims.upload import content_path
from attachments.files.read import open_stored
from attachments.http.current_user import CurrentUser


def opened(user: CurrentUser, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> tuple[Attachment, BinaryIO]:
    """The attachment with its open file. Raises `UnknownClaim` and so on, `ContentAway`."""
    claim = find_claim(user, claim_id)
    for _ in range(2):  # a replacement may commit between the two looks
        found = find_attachment(user, claim_id, item_id, attachment_id)
        try:
            return found, open_stored(content_path(claim, item_id, found.content_id))
        except FileNotFoundError:
            continue
    raise ContentAway(ContentAway.__doc__)

"""People of tenants, their access tokens, claims, items, attachments, and what was uploaded.

The database keeps what is submitted from any change. Names of files stand here and nowhere on a disk.
"""

from attachments.claims.models.access_token import AccessToken
from attachments.claims.models.attachment import Attachment
from attachments.claims.models.claim import TRANSITIONS, Claim, ClaimItem, ClaimState
from attachments.claims.models.membership import Membership, MembershipRole
from attachments.claims.models.upload import AttachmentUpload

__all__ = [
    "TRANSITIONS",
    "AccessToken",
    "Attachment",
    "AttachmentUpload",
    "Claim",
    "ClaimItem",
    "ClaimState",
    "Membership",
    "MembershipRole",
]

"""What this room refuses. Database errors are translated by constraint name, once, here."""

from typing import NoReturn

from django.db import DatabaseError


class ClaimsError(Exception):
    """Refused. Permanent unless a subclass says otherwise; nothing was changed."""


class UnknownClaim(ClaimsError):
    """There is no such claim, or none that you may see. Permanent: list your claims."""


class UnknownItem(ClaimsError):
    """The claim has no such item. Permanent: read the claim."""


class UnknownAttachment(ClaimsError):
    """The item has no such attachment. Permanent: read the claim."""


class NotYours(ClaimsError):
    """Only whoever began a claim may change it. Permanent."""


class NotDraft(ClaimsError):
    """The claim was submitted, so nothing of it changes any more. Permanent: begin another claim."""


class NothingToSubmit(ClaimsError):
    """A claim without an item is not submitted. Permanent until it has one."""


class TooMany(ClaimsError):
    """There is no room for another one here. Permanent until one is deleted; the text names the limit."""


class NumberTaken(ClaimsError):
    """The tenant has a claim of this number. Permanent: choose another number."""


class InvalidValue(ClaimsError):
    """A value is refused. Permanent: texts are 1 to 200 characters without control characters, amounts positive."""


class UploadConflict(ClaimsError):
    """This X-Request-ID already stands for another content. Permanent: use a new one for another upload."""


class ContentAway(ClaimsError):
    """The file is being replaced or deleted at this moment. Transient: repeat."""


class InvalidUpload(ClaimsError):
    """The body is no upload. Permanent: send multipart/form-data with one named, non-empty file in the part `file`."""


class UploadTooLarge(ClaimsError):
    """The file is larger than an upload may be. Permanent: send a smaller one."""


class UnknownAccount(ClaimsError):
    """There is no such account, or it is not active. Permanent: `manage.py operator NAME` makes one."""


class UnknownMember(ClaimsError):
    """The account does not belong to this tenant. Permanent: `manage.py members add` it first."""


class UnknownToken(ClaimsError):
    """There is no such token. Permanent: see `manage.py access_tokens list`."""


class InvalidTenant(ClaimsError):
    """A tenant is `organization:ID` or `personal:ID`, with 1 to 200 printable ASCII characters in ID. Permanent."""


_BY_CONSTRAINT: dict[str, type[ClaimsError]] = {
    "claim_number_once": NumberTaken,
    "claim_number": InvalidValue,
    "claim_title": InvalidValue,
    "claim_item_description": InvalidValue,
    "claim_item_amount": InvalidValue,
    "claim_item_currency": InvalidValue,
    "claim_attachment_name": InvalidUpload,
    "claim_attachment_media_type": InvalidUpload,
    "claim_submitted_stays": NotDraft,
    "claim_item_in_draft": NotDraft,
    "claim_attachment_in_draft": NotDraft,
}


def translate(error: DatabaseError) -> NoReturn:
    """Raise what the violated constraint means. An error that names none of ours is raised again as it is."""
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    meaning = _BY_CONSTRAINT.get(name or "")
    if meaning is None:
        raise error
    raise meaning(meaning.__doc__) from error

"""What this room refuses, as problems."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI

from attachments.claims import errors
from attachments.http.problems import Kind, problem

KINDS: dict[type[errors.ClaimsError], Kind] = {
    errors.UnknownClaim: Kind.NOT_FOUND,
    errors.UnknownItem: Kind.NOT_FOUND,
    errors.UnknownAttachment: Kind.NOT_FOUND,
    errors.NotYours: Kind.FORBIDDEN,
    errors.NotDraft: Kind.WRONG_STATE,
    errors.NothingToSubmit: Kind.WRONG_STATE,
    errors.TooMany: Kind.WRONG_STATE,
    errors.NumberTaken: Kind.CONFLICT,
    errors.UploadConflict: Kind.CONFLICT,
    errors.InvalidValue: Kind.INVALID_REQUEST,
    errors.InvalidUpload: Kind.INVALID_REQUEST,
    errors.ContentAway: Kind.UNAVAILABLE,
}
"""The rules of 400 and 404: what a caller may not see is not there, and what is in the wrong state is a bad request."""


def answer_claims_refusals(api: NinjaAPI) -> None:
    """Register the handler."""
    api.add_exception_handler(errors.ClaimsError, _refused)


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(KINDS[type(error)], str(error))

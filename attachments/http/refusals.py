"""Every error that a view may raise, as a problem. The first class in an error's ancestry that stands here decides."""

from typing import Any

import structlog
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from attachments.files import errors as files
from attachments.http.problems import Kind, Refused, problem
from billing.commercial import hooks

log = structlog.get_logger("attachments.http")

NO_CREDENTIAL = "Show an access token as `Authorization: Bearer …`, or log in."
AWAY = "A database that is needed here gives no answer. Nothing is known to have changed; repeat the same request."
FAULT = "The request could not be answered. Repeat it with the same X-Request-ID; if it stays so, tell an operator."
MOST_SAID = 5
"""Faults of a request that one answer names."""

_BY_STATUS = {
    400: Kind.INVALID_REQUEST,
    401: Kind.NOT_AUTHENTICATED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    409: Kind.CONFLICT,
    413: Kind.TOO_LARGE,
    415: Kind.WRONG_MEDIA_TYPE,
}
_COMMERCIAL: dict[type[hooks.CommercialError], Kind] = {
    hooks.OperationConflict: Kind.CONFLICT,
    hooks.CommercialUnavailable: Kind.UNAVAILABLE,
    hooks.InFlight: Kind.UNAVAILABLE,
    hooks.ReservationLost: Kind.UNAVAILABLE,
    hooks.OutcomeUnknown: Kind.UNAVAILABLE,
    hooks.TransactionLost: Kind.UNAVAILABLE,
    hooks.CommercialMisconfigured: Kind.MISCONFIGURED,
}
"""Whatever else is a `CommercialError` is a fault of ours."""
_FILES: dict[type[files.FilesError], Kind] = {
    files.TooLarge: Kind.TOO_LARGE,
    files.StorageFull: Kind.UNAVAILABLE,
    files.StorageFailed: Kind.UNAVAILABLE,
    files.PathInFlight: Kind.UNAVAILABLE,
    files.DifferentFilesystems: Kind.MISCONFIGURED,
}
"""Likewise for `FilesError`."""


def answer_refusals(api: NinjaAPI) -> None:
    """Register the handlers below."""
    for error, handler in (
        (Refused, _refused),
        (ValidationError, _invalid),
        (AuthenticationError, _not_authenticated),
        (HttpError, _of_ninja),
        (Http404, _not_found),
        (RequestDataTooBig, _too_large),
        (SuspiciousOperation, _unreadable),
        (BadRequest, _unreadable),
        (UnreadablePostError, _unreadable),
        (DataError, _unreadable),
        (OperationalError, _away),
        (InterfaceError, _away),
        (hooks.QuotaExceeded, _exceeded),
        (hooks.CommercialError, _commercial),
        (files.FilesError, _of_files),
        (Exception, _fault),
    ):
        api.add_exception_handler(error, handler)


def _refused(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(error.kind, error.detail, headers=error.headers, members=error.members)


def _invalid(request: HttpRequest, error: Any) -> HttpResponse:
    """Names where each fault is and what is asked for there, and never what was sent."""
    faults = [
        {"where": ".".join(str(part) for part in fault.get("loc", ())), "fault": str(fault.get("msg", ""))}
        for fault in error.errors[:MOST_SAID]
    ]
    return problem(Kind.INVALID_REQUEST, "Correct what `faults` names.", members={"faults": faults})


def _not_authenticated(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(Kind.NOT_AUTHENTICATED, NO_CREDENTIAL)


def _of_ninja(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(_BY_STATUS.get(error.status_code, Kind.INVALID_REQUEST), error.message)


def _not_found(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(Kind.NOT_FOUND, "There is no such thing at this address, or none that you may see.")


def _too_large(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(Kind.TOO_LARGE, "The body is larger than what this address reads.")


def _unreadable(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(Kind.INVALID_REQUEST, "The request cannot be read.")


def _away(request: HttpRequest, error: Any) -> HttpResponse:
    log.warning("api_database_away", error_class=type(error).__name__)
    return problem(Kind.UNAVAILABLE, AWAY)


def _exceeded(request: HttpRequest, error: Any) -> HttpResponse:
    standing = error.standing
    return problem(
        Kind.QUOTA_EXCEEDED,
        f"{standing.requested} asked for, {standing.free} free of {standing.hard_limit}. Nothing was touched.",
        members={
            "limit": standing.hard_limit,
            "used": standing.used,
            "held": standing.held,
            "requested": standing.requested,
        },
    )


def _commercial(request: HttpRequest, error: Any) -> HttpResponse:
    kind = next((kind for known, kind in _COMMERCIAL.items() if isinstance(error, known)), None)
    if kind is None:
        return _fault(request, error)
    if kind is Kind.MISCONFIGURED:
        log.error("api_commercial_misconfigured", error_class=type(error).__name__)
    return problem(kind, str(type(error).__doc__))


def _of_files(request: HttpRequest, error: Any) -> HttpResponse:
    """Of a filesystem's own words, which name paths, nothing is told."""
    kind = next((kind for known, kind in _FILES.items() if isinstance(error, known)), None)
    if kind is None:
        return _fault(request, error)
    if kind is not Kind.TOO_LARGE:
        log.error("api_storage", error_class=type(error).__name__)
    return problem(kind, str(type(error).__doc__))


def _fault(request: HttpRequest, error: Any) -> HttpResponse:
    log.error("api_fault", error_class=type(error).__name__, exc_info=error)
    return problem(Kind.INTERNAL, FAULT)

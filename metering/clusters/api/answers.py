"""Answers of the API: contracts as JSON, refusals with a code whose first three digits are the status."""

from django.http import HttpResponse

from metering.clusters.contracts import ApiRefusal
from outbox.contracts.contract import Contract

RETRY_AFTER_SECONDS = 5


class Refusal(Exception):
    """The request is refused; `status` and text are what the caller is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer(contract: Contract, *, status: int = 200) -> HttpResponse:
    """A contract's one wire form."""
    return HttpResponse(contract.canonical(), status=status, content_type="application/json")


def refused(refusal: Refusal) -> HttpResponse:
    """The refusal as its contract, with the headers that its status asks for."""
    response = answer(ApiRefusal(code=refusal.status * 100, message=str(refusal)), status=refusal.status)
    if refusal.status == 401:  # noqa: PLR2004  # RFC 9110: a 401 says how to authenticate
        response.headers["WWW-Authenticate"] = 'Bearer realm="platform administrators"'
    if refusal.status in {409, 503}:
        response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response

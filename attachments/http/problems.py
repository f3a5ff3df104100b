"""Refusals as problem details (RFC 9457): what is wrong, in words for people and under a type for programs.

A type is a URN of this project; its last part is a `Kind`. No answer holds a stack trace or what a database said.
"""

from typing import Any, Final

from django.http import HttpResponse, JsonResponse
from ninja import Schema
from pydantic import ConfigDict

from attachments.http import metrics
from attachments.http.kinds import TITLES, Kind

__all__ = ["Kind", "ProblemDetails", "Refused", "problem"]

MEDIA_TYPE: Final = "application/problem+json"
NAMESPACE: Final = "urn:backbone:problem:"
RETRY_AFTER_SECONDS: Final = 2


class ProblemDetails(Schema):
    """One refusal. Further members, if any, are those that its type names."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


class Refused(Exception):
    """The request ends here, with this problem. `members` are added to it, `headers` to the answer."""

    def __init__(
        self, kind: Kind, detail: str, *, headers: dict[str, str] | None = None, members: dict[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = headers or {}
        self.members = members or {}


def problem(
    kind: Kind, detail: str, *, headers: dict[str, str] | None = None, members: dict[str, Any] | None = None
) -> HttpResponse:
    """The answer for a problem, never to be cached."""
    metrics.refused(kind)
    status, title = TITLES[kind]
    body = {"type": f"{NAMESPACE}{kind}", "title": title, "status": status, "detail": detail, **(members or {})}
    retry = {"Retry-After": str(RETRY_AFTER_SECONDS)} if kind is Kind.UNAVAILABLE else {}
    login = {"WWW-Authenticate": 'Bearer realm="backbone"'} if kind is Kind.NOT_AUTHENTICATED else {}
    return JsonResponse(
        body,
        status=status,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **retry, **login, **(headers or {})},
    )

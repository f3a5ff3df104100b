"""`POST /api/v1/connectors/<id>/events`: one event of a financial connector, by the Standard Webhooks conventions.

The answer to an event is 200 with our id of it, the same bytes whenever it is delivered again. Whoever shows no good
signature gets one 401, whatever was wrong.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils import timezone
from ninja import Router

from attachments.connectors import metrics
from attachments.connectors.authenticate import AuthenticationFailed, authenticate
from attachments.connectors.contracts import AcceptedConnectorEvent
from attachments.connectors.errors import PayloadConflict, SealBroken
from attachments.connectors.ingest import Outcome, ingest
from attachments.connectors.metrics import Answered
from attachments.http.problems import Kind, ProblemDetails, Refused
from billing.commercial import hooks
from outbox.contracts.contract import timestamp

NOT_LET_IN = "The request is not signed with an accepted secret of this connector, or not now."
NO_QUOTA = "The tenant's plan accepts no more events in this period. Nothing was stored; send it again later."
NOT_NOW = "The event cannot be judged now. Nothing is known to have changed; send the same event again."

SIGNED_BODY = {
    "parameters": [
        {"name": f"webhook-{name}", "in": "header", "required": True, "schema": {"type": "string"}, "description": said}
        for name, said in (
            ("id", "What the provider calls the event, the same at every attempt; without a full stop."),
            ("timestamp", "When this attempt was made, in whole seconds since 1970."),
            (
                "signature",
                "`v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`; several with spaces between.",
            ),
        )
    ],
    "requestBody": {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
}

router = Router(tags=["connectors"])
log = structlog.get_logger("attachments.connectors")


@router.post(
    "/{connector_id}/events",
    response={
        200: AcceptedConnectorEvent,
        **dict.fromkeys((401, 409, 413, 429, 503), ProblemDetails),
    },
    summary="Deliver an event",
    operation_id="deliverConnectorEvent",
    openapi_extra=SIGNED_BODY,
)
def deliver(request: HttpRequest, connector_id: str) -> HttpResponse:
    """Deliver one event: the raw body, with the headers `webhook-id`, `webhook-timestamp` and `webhook-signature`."""
    with _refusals_as_problems(connector_id):
        delivery = authenticate(
            connector_id=connector_id, headers=request.headers, body=_body(request), now=timezone.now()
        )
        done = ingest(delivery, at=timezone.now())
    metrics.answered(Answered.ACCEPTED if done.outcome is Outcome.ACCEPTED else Answered.REPLAYED)
    log.info("connector_event", connector_id=connector_id, event_id=str(done.event_id), outcome=done.outcome.value)
    told = AcceptedConnectorEvent(event_id=str(done.event_id), accepted_at=timestamp(done.accepted_at))
    return HttpResponse(told.canonical(), content_type="application/json", headers={"Cache-Control": "no-store"})


@contextmanager
def _refusals_as_problems(connector_id: str) -> Iterator[None]:
    try:
        yield
    except AuthenticationFailed as error:
        metrics.not_let_in(error.reason)
        log.warning("connector_not_let_in", reason=error.reason.value)
        raise Refused(Kind.NOT_AUTHENTICATED, NOT_LET_IN, headers={"WWW-Authenticate": "StandardWebhooks"}) from None
    except PayloadConflict as error:
        metrics.answered(Answered.CONFLICTING)
        log.warning("connector_payload_conflict", connector_id=connector_id)
        raise Refused(Kind.CONFLICT, str(error)) from None
    except hooks.QuotaExceeded:
        metrics.answered(Answered.EXCEEDED)
        log.warning("connector_quota_exceeded", connector_id=connector_id)
        raise Refused(Kind.QUOTA_EXCEEDED, NO_QUOTA) from None
    except (hooks.CommercialError, SealBroken, DatabaseError, InterfaceError) as error:
        metrics.answered(Answered.UNAVAILABLE)
        log.error("connector_unavailable", connector_id=connector_id, error_class=type(error).__name__)
        raise Refused(Kind.UNAVAILABLE, NOT_NOW) from error


def _body(request: HttpRequest) -> bytes:
    """The body as it came. Raises `Refused`: 413 beyond the bound, 400 if it never came to its end."""
    largest = settings.CONNECTOR_MAX_BODY_BYTES
    try:
        body = request.body
    except RequestDataTooBig:
        body = None
    except UnreadablePostError:
        raise Refused(Kind.INVALID_REQUEST, "The body never came to its end.") from None
    if body is None or len(body) > largest:
        metrics.answered(Answered.TOO_LARGE)
        raise Refused(Kind.TOO_LARGE, f"An event may have {largest} bytes.")
    return body

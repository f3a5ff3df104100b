"""`POST /api/v1/connectors/<id>/events`: one event of a financial connector, by the Standard Webhooks conventions.

The answer to an event is 200 with our id of it, the same bytes whenever it is delivered again. Whoever shows no good
signature gets one 401, whatever was wrong. The web process writes here through the owner roles of two databases; it
makes these connections for the one call and gives them up at its end.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError, InterfaceError, connections
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils import timezone
from ninja import Router

from attachments.connectors import metrics
from attachments.connectors.authenticate import AuthenticationFailed, authenticate
from attachments.connectors.bound import largest_body
from attachments.connectors.contracts import AcceptedConnectorEvent
from attachments.connectors.errors import PayloadConflict, SealBroken
from attachments.connectors.ingest import Outcome, ingest
from attachments.connectors.metrics import Answered
from attachments.http.problems import Kind, ProblemDetails, Refused
from billing.commercial import hooks
from config.owners import owner_named
from outbox.contracts.contract import timestamp

USED = tuple(owner_named(name).alias for name in ("attachments", "billing"))
NOT_LET_IN = "The request is not signed with an accepted secret of this connector, or not now."
NO_QUOTA = "The tenant's plan accepts no more events in this period. Nothing was stored; send it again later."
NOT_NOW = "The event cannot be judged now. Nothing is known to have changed; send the same event again."

router = Router(tags=["connectors"])
log = structlog.get_logger("attachments.connectors")


@router.post(
    "/{connector_id}/events",
    response={
        200: AcceptedConnectorEvent,
        **dict.fromkeys((401, 409, 413, 429, 503), ProblemDetails),
    },
    summary="Deliver an event",
    url_name="connector_events",
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
    finally:
        for alias in USED:
            connections[alias].close()


def _body(request: HttpRequest) -> bytes:
    """The body as it came. Raises `Refused` (413, or 400 where it never came to its end)."""
    try:
        body = request.body
    except RequestDataTooBig:
        body = None
    except UnreadablePostError:
        raise Refused(Kind.INVALID_REQUEST, "The body never came to its end.") from None
    if body is None or len(body) > largest_body():
        metrics.answered(Answered.TOO_LARGE)
        raise Refused(Kind.TOO_LARGE, f"An event may have {largest_body()} bytes.")
    return body

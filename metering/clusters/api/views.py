"""Rotate, list, revoke. Each view: who calls, what is asked, one call, one answer.

Answers are never cached, and a token's text is in the answer to its rotation only. The web process writes here through
the owner role of `metering`; it makes that connection for the one call and gives it up at its end.
"""

import functools
import json
from collections.abc import Callable
from typing import cast
from uuid import UUID

from django.db import InterfaceError, OperationalError, connections
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from metering.clusters.api.answers import Refusal, answer, refused
from metering.clusters.api.door import administrator, body_of
from metering.clusters.audit import ALIAS, Actor
from metering.clusters.contracts import (
    ListedToken,
    RevokedToken,
    RotatedToken,
    RotateRequest,
    SupersededToken,
    TokenList,
    TokenMode,
    TokenState,
)
from metering.clusters.errors import ClustersError, RotationUnderWay, RotationUnsettled, UnknownCluster, UnknownToken
from metering.clusters.models import Mode, OtlpToken
from metering.clusters.revoke import revoke
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import secret_store
from metering.clusters.tokens_of import is_accepted, tokens_of
from outbox.contracts.contract import ContractViolation, timestamp

View = Callable[..., HttpResponse]
LARGEST_ID = 2**63 - 1
STATUS: dict[type[ClustersError], int] = {
    UnknownCluster: 404,
    UnknownToken: 404,
    RotationUnderWay: 409,
    RotationUnsettled: 503,
}
AWAY = "A database that is needed here cannot be reached. Nothing is known to have changed; repeat."


def _view(method: str) -> Callable[[Callable[..., HttpResponse]], View]:
    """A view of one method behind the door. It is exempt from the middleware's CSRF check because the door makes it."""

    def decorate(view: Callable[..., HttpResponse]) -> View:
        @csrf_exempt
        @never_cache
        @functools.wraps(view)
        def guarded(request: HttpRequest, cluster_id: str, **parts: str) -> HttpResponse:
            try:
                if request.method != method:
                    response = refused(Refusal(405, f"Only {method} is answered here."))
                    response.headers["Allow"] = method
                    return response
                actor = administrator(request)
                return view(request, _cluster(cluster_id), actor, **parts)
            except Refusal as refusal:
                return refused(refusal)
            except ClustersError as error:
                return refused(Refusal(STATUS[type(error)], str(error)))
            except (OperationalError, InterfaceError):
                return refused(Refusal(503, AWAY))
            finally:
                connections[ALIAS].close()

        return guarded

    return decorate


@_view("POST")
def rotate_view(request: HttpRequest, cluster_id: int, actor: Actor) -> HttpResponse:
    """201 with the token."""
    asked = _body(request)
    mode = Mode(asked.mode) if asked.mode else None
    done = rotate(cluster_id=cluster_id, mode=mode, actor=actor, store=secret_store())
    return answer(
        RotatedToken(
            cluster_id=str(done.cluster_id),
            token_id=str(done.token_id),
            token=done.plaintext.text,
            mode=cast(TokenMode, done.mode.value),
            issued_at=timestamp(done.issued_at),
            grace_seconds=int(done.grace.total_seconds()),
            superseded=tuple(
                SupersededToken(token_id=str(one.token_id), expires_at=timestamp(one.expires_at))
                for one in done.superseded
            ),
        ),
        status=201,
    )


@_view("GET")
def list_view(request: HttpRequest, cluster_id: int, actor: Actor) -> HttpResponse:
    """200 with the newest tokens."""
    found = tokens_of(cluster_id=cluster_id)
    return answer(
        TokenList(
            cluster_id=str(cluster_id),
            tokens=tuple(_listed(token) for token in found.tokens),
            truncated=found.truncated,
        )
    )


@_view("DELETE")
def revoke_view(request: HttpRequest, cluster_id: int, actor: Actor, token_id: str) -> HttpResponse:
    """200, also if it was revoked before."""
    try:
        wanted = UUID(token_id)
    except ValueError:
        raise UnknownToken(UnknownToken.__doc__) from None
    revoked = revoke(cluster_id=cluster_id, token_id=wanted, actor=actor)
    return answer(RevokedToken(cluster_id=str(cluster_id), token_id=str(wanted), revoked_before=not revoked))


def _cluster(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:20]) <= LARGEST_ID and text == str(int(text[:20]))):
        raise Refusal(404, str(UnknownCluster.__doc__))
    return int(text)


def _body(request: HttpRequest) -> RotateRequest:
    try:
        data = body_of(request)
        return RotateRequest.from_wire(json.loads(data)) if data.strip() else RotateRequest()
    except (ValueError, TypeError, RecursionError) as error:
        detail = str(error) if isinstance(error, ContractViolation) else "it is no JSON object"
        raise Refusal(400, f'Write nothing, or {{"mode": "gateway"}} or {{"mode": "per_cluster"}}: {detail}.') from None


def _listed(token: OtlpToken) -> ListedToken:
    times = {
        name: timestamp(at)
        for name in ("handed_over_at", "superseded_at", "expires_at", "revoked_at")
        if (at := getattr(token, name)) is not None
    }
    return ListedToken(
        token_id=str(token.token_id),
        mode=cast(TokenMode, token.mode),
        state=cast(TokenState, token.state),
        accepted=is_accepted(token, now=timezone.now()),
        issued_at=timestamp(token.issued_at),
        **times,
    )

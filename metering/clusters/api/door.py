"""Who may call: a platform administrator, by an administrator's token or by a session of the operators' login.

Either way it is the account's permission in core, read at this request, that opens the door; an operator has none. A
request that shows an Authorization header is judged by it alone, so it needs no CSRF token: browsers do not add that
header by themselves. A request without one is judged by its session, and then proves that it is no forgery.
"""

import hashlib
import hmac
import re

import structlog
from django.contrib.auth.models import User
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_protect

from config.owners import owner_named
from metering.clusters.administrators import CORE_SESSION, PERMISSION
from metering.clusters.api.answers import Refusal
from metering.clusters.audit import Actor
from metering.clusters.models import AdministratorToken

LARGEST_BODY = 4096
READ_ALIAS = owner_named("metering").read_alias
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]{1,512}) *")
NO_CREDENTIAL = "Show an administrator's token as `Authorization: Bearer …`, or log in."
NOT_ACCEPTED = "This administrator's token is not accepted. Mint one with `manage.py administrator mint`."
NO_PERMISSION = "This account may not manage tokens of clusters. `manage.py administrator grant` lets it."
FORGED = "A request with a session needs its CSRF token in the header X-CSRFToken, and comes from our own host."

log = structlog.get_logger("metering.clusters.api")


def administrator(request: HttpRequest) -> Actor:
    """The administrator who calls. Raises `Refusal` (401 or 403) or a database error."""
    header = request.headers.get("Authorization")
    return _by_token(header) if header is not None else _by_session(request)


def _by_token(header: str) -> Actor:
    shown = BEARER.fullmatch(header)
    if shown is None:
        raise _refuse(401, NO_CREDENTIAL, "malformed_header")
    wanted = hashlib.sha256(shown[1].encode()).hexdigest()
    token = AdministratorToken.objects.using(READ_ALIAS).filter(token_sha256=wanted).first()
    if token is None or not hmac.compare_digest(token.token_sha256, wanted):
        raise _refuse(401, NOT_ACCEPTED, "token_not_found")
    if token.revoked_at is not None:
        raise _refuse(401, NOT_ACCEPTED, "token_revoked")
    if timezone.now() >= token.expires_at:
        raise _refuse(401, NOT_ACCEPTED, "token_expired")
    account = User.objects.using(CORE_SESSION).filter(pk=token.account_id).first()
    if account is None or not account.has_perm(PERMISSION):
        raise _refuse(403, NO_PERMISSION, "no_permission")
    return Actor(name=account.get_username(), through=f"administrator-token:{token.token_id}")


def _by_session(request: HttpRequest) -> Actor:
    if not request.user.is_authenticated:
        raise _refuse(401, NO_CREDENTIAL, "missing_header")
    if not request.user.has_perm(PERMISSION):
        raise _refuse(403, NO_PERMISSION, "no_permission")
    body_of(request)  # the check may look for its token in a form, after which Django no longer gives the bytes
    if _unforged(request).status_code != HttpResponse.status_code:
        raise _refuse(403, FORGED, "csrf")
    return Actor(name=request.user.get_username(), through="session")


def body_of(request: HttpRequest) -> bytes:
    """The body, which may have `LARGEST_BODY` bytes. Raises `Refusal` (413)."""
    try:
        body = request.body
    except (RequestDataTooBig, UnreadablePostError):
        body = None
    if body is None or len(body) > LARGEST_BODY:
        raise Refusal(413, f"The body may have {LARGEST_BODY} bytes.")
    return body


@csrf_protect
def _unforged(request: HttpRequest) -> HttpResponse:
    """200, unless Django's own check answers 403 in its place."""
    return HttpResponse()


def _refuse(status: int, message: str, reason: str) -> Refusal:
    log.warning("admin_api_refused", status=status, reason=reason)
    return Refusal(status, message)

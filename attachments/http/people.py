"""The doors for people: an access token, or a session of core's login with Django's own CSRF check.

A request that shows an Authorization header is judged by it alone, so it needs no CSRF token: browsers do not add that
header by themselves. Both doors read membership at every request, so an end is effective with the next one.
"""

import copy
import hmac
import re
from typing import Literal, cast

import structlog
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from ninja.security import APIKeyCookie, HttpBearer

from attachments.claims.errors import InvalidTenant
from attachments.claims.members import CORE_SESSION, READ_ALIAS, Tenant
from attachments.claims.models import AccessToken, Membership, MembershipRole
from attachments.claims.tokens import hash_of
from attachments.http.current_user import CurrentUser
from attachments.http.problems import Kind, Refused

TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{1,512}")
TENANT_HEADER = "X-Tenant"
NOT_ACCEPTED = "This access token is not accepted. Mint one with `manage.py access_tokens mint`."
FORGED = "A request with a session needs its CSRF token in the header X-CSRFToken, and comes from our own host."
NO_TENANT = "This account belongs to no tenant, or not to the one in X-Tenant. `manage.py members add` lets it."
WHICH_TENANT = "This account belongs to several tenants; name one in the header X-Tenant, as kind:id."
WRONG_TENANT = "X-Tenant is `organization:ID` or `personal:ID`."

log = structlog.get_logger("attachments.http")


class TokenDoor(HttpBearer):
    """An opaque bearer token, bound to an account and a tenant."""

    def authenticate(self, request: HttpRequest, token: str) -> CurrentUser | None:
        found = accepted_token(token.strip())
        if found is None:
            raise Refused(Kind.NOT_AUTHENTICATED, NOT_ACCEPTED)
        return _user(found.membership, f"token:{found.token_id}")


class SessionDoor(APIKeyCookie):
    """A session of the operators' login. `X-Tenant` says which tenant, where the account belongs to several."""

    param_name = "sessionid"

    def __init__(self) -> None:
        super().__init__(csrf=False)

    def authenticate(self, request: HttpRequest, key: str | None) -> CurrentUser | None:
        if key is None or "Authorization" in request.headers or not request.user.is_authenticated:
            return None
        _ensure_not_forged(request)
        wanted = request.headers.get(TENANT_HEADER)
        rows = Membership.objects.using(READ_ALIAS).filter(user_id=request.user.pk, ended_at=None)
        if wanted is not None:
            try:
                tenant = Tenant.parse(wanted)
            except InvalidTenant:
                raise Refused(Kind.INVALID_REQUEST, WRONG_TENANT) from None
            rows = rows.filter(tenant_kind=tenant.kind, tenant_id=tenant.id)
        memberships = list(rows[:2])
        if not memberships:
            raise Refused(Kind.FORBIDDEN, NO_TENANT)
        if len(memberships) > 1:
            raise Refused(Kind.INVALID_REQUEST, WHICH_TENANT)
        return _user(memberships[0], f"session:{request.session.session_key}")


DOORS = (TokenDoor(), SessionDoor())
"""In the order in which they are tried; the first that knows the caller decides."""


def accepted_token(shown: str) -> AccessToken | None:
    """The token with this text, if it is accepted now. Nothing that was shown is logged."""
    wanted = hash_of(shown)
    found = (
        AccessToken.objects.using(READ_ALIAS).select_related("membership").filter(token_sha256=wanted).first()
        if TOKEN.fullmatch(shown)
        else None
    )
    reason = _why_refused(found, wanted)
    if reason is not None:
        log.warning("api_refused", reason=reason)
        return None
    return found


def _why_refused(found: AccessToken | None, wanted: str) -> str | None:
    if found is None or not hmac.compare_digest(found.token_sha256, wanted):
        return "token_not_found"
    if found.revoked_at is not None or found.membership.ended_at is not None:
        return "token_revoked"
    if timezone.now() >= found.expires_at:
        return "token_expired"
    if not User.objects.using(CORE_SESSION).filter(pk=found.membership.user_id, is_active=True).exists():
        return "account_inactive"
    return None


def _ensure_not_forged(request: HttpRequest) -> None:
    """Django's check, on a copy that has no body: the check would look for its token in a form, and so read an upload
    into memory. The token is taken from the header alone."""
    asked = copy.copy(request)
    if asked.method == "POST":
        asked.method = "PUT"
    check = CsrfViewMiddleware(lambda _: HttpResponse())
    check.process_request(asked)
    if check.process_view(asked, lambda _: HttpResponse(), (), {}) is not None:
        log.warning("api_refused", reason="csrf")
        raise Refused(Kind.FORBIDDEN, FORGED)


def _user(membership: Membership, identity: str) -> CurrentUser:
    return CurrentUser(
        user_id=membership.user_id,
        tenant_kind=cast(Literal["organization", "personal"], membership.tenant_kind),
        tenant_id=membership.tenant_id,
        is_reviewer=membership.role == MembershipRole.REVIEWER,
        session_key_for_identity=identity,
    )

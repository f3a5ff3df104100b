"""Whether a request shows a token or a session that is accepted now: asked before its body is read."""

from http.cookies import CookieError, SimpleCookie

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import DatabaseError, InterfaceError, connections
from django.utils import timezone

from attachments.claims.members import CORE_SESSION, READ_ALIAS
from attachments.http.people import accepted_token

MOST_COOKIES_BYTES = 8192
BEARER = "bearer "


def is_known(headers: dict[bytes, bytes]) -> bool | None:
    """As the header names come from the server, in lower case. None if a database gives no answer."""
    shown = headers.get(b"authorization", b"").decode("latin-1")
    try:
        if shown:
            return shown.lower().startswith(BEARER) and accepted_token(shown[len(BEARER) :].strip()) is not None
        return _has_session(headers.get(b"cookie", b"")[:MOST_COOKIES_BYTES].decode("latin-1"))
    except (DatabaseError, InterfaceError):
        return None
    finally:
        for alias in (READ_ALIAS, CORE_SESSION):
            connections[alias].close()


def _has_session(cookies: str) -> bool:
    try:
        shown = SimpleCookie(cookies).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return False
    if shown is None or "\x00" in shown.value:
        return False
    now = timezone.now()
    return Session.objects.using(CORE_SESSION).filter(session_key=shown.value, expire_date__gt=now).exists()

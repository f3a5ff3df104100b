"""The caller's name for one request, from the header X-Request-ID."""

import re

from django.http import HttpRequest

from attachments.http.problems import Kind, Refused

HEADER = "X-Request-ID"
FORM = re.compile(r"[\x21-\x7e]{1,200}")


def request_id_of(request: HttpRequest) -> str | None:
    """What the header says, None if there is none. Raises `Refused` (400)."""
    given = request.headers.get(HEADER)
    if given is not None and not FORM.fullmatch(given):
        raise Refused(Kind.INVALID_REQUEST, f"{HEADER} is 1 to 200 printable ASCII characters without spaces.")
    return given

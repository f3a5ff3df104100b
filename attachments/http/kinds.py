"""The types of problems, each with its status and title."""

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Every type of problem that this API answers with, with its status."""

    INVALID_REQUEST = "invalid-request"
    """400. A path, parameter, header or body does not have the form that the document of the API names."""
    WRONG_STATE = "wrong-state"
    """400. What is addressed is there, and may not be changed in this way any more or yet."""
    NOT_AUTHENTICATED = "not-authenticated"
    """401. Nothing that is accepted says who calls."""
    FORBIDDEN = "forbidden"
    """403. It is known who calls, and that one may not, or the request may be forged."""
    NOT_FOUND = "not-found"
    """404. There is no such thing, or none that the caller may see."""
    METHOD_NOT_ALLOWED = "method-not-allowed"
    """405. The address answers other methods."""
    TOO_SLOW = "too-slow"
    """408. The rest of the body did not come."""
    CONFLICT = "conflict"
    """409. The same identity stands for something else already."""
    TOO_LARGE = "too-large"
    """413. The body is larger than a bound of this API."""
    WRONG_MEDIA_TYPE = "wrong-media-type"
    """415. The body is in another form than the one that is read here."""
    QUOTA_EXCEEDED = "quota-exceeded"
    """429. The plan leaves less than is asked for; `limit`, `used`, `held` and `requested` say how much."""
    INTERNAL = "internal"
    """500. A fault of ours. Nothing is known to have changed."""
    UNAVAILABLE = "unavailable"
    """503. Something that is needed gives no answer now; repeat after `Retry-After`."""
    MISCONFIGURED = "misconfigured"
    """503. An operator has to correct the configuration first; nothing was touched."""


TITLES: Final[dict[Kind, tuple[int, str]]] = {
    Kind.INVALID_REQUEST: (400, "The request is not valid"),
    Kind.WRONG_STATE: (400, "It is not in a state that allows this"),
    Kind.NOT_AUTHENTICATED: (401, "Authentication is needed"),
    Kind.FORBIDDEN: (403, "This is not allowed"),
    Kind.NOT_FOUND: (404, "There is no such thing"),
    Kind.METHOD_NOT_ALLOWED: (405, "The method is not answered here"),
    Kind.TOO_SLOW: (408, "The body came too slowly"),
    Kind.CONFLICT: (409, "It conflicts with what is there"),
    Kind.TOO_LARGE: (413, "The body is too large"),
    Kind.WRONG_MEDIA_TYPE: (415, "The body has a form that is not read here"),
    Kind.QUOTA_EXCEEDED: (429, "The quota is used up"),
    Kind.INTERNAL: (500, "A fault of the service"),
    Kind.UNAVAILABLE: (503, "The service is not available"),
    Kind.MISCONFIGURED: (503, "The service is not configured for this"),
}

"""Why a request did not succeed: closed lists, which are labels of metrics and fields of logs."""

from enum import StrEnum


class RefusedBody(StrEnum):
    """Why a body is refused for good. Real clients drop it at once."""

    MALFORMED = "malformed"
    """400: no ExportLogsServiceRequest, or no valid gzip."""
    EMPTY = "empty"
    """400: a body was announced and nothing came, which some server in between must have swallowed."""
    TOO_LARGE = "too_large"
    """413: above 8 MiB on the wire, or above the bound after inflation."""
    UNSUPPORTED = "unsupported"
    """415: neither protobuf nor, where a setting allows it, JSON; or another encoding than identity and gzip."""


class Unavailable(StrEnum):
    """Why a request is answered 503. Real clients keep it and send it again."""

    TOKEN_STORE = "token_store"  # noqa: S105  # the name of a reason
    """Whose token it is could not be asked."""
    STORE = "store"
    """The events could not be committed."""
    ARCHIVE = "archive"
    """They are committed, and could not be archived."""
    BUSY = "busy"
    """Everything that this process may do at once was in work for too long."""
    SLOW = "slow"
    """The body did not arrive in time."""
    UNEXPECTED = "unexpected"
    """A defect; its traceback is in the log."""

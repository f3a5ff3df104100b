"""Every answer of the receiver, exactly as the contract or OTLP/HTTP fixes it.

Only 429, 502, 503 and 504 make real clients keep their data, so whatever may pass is 503 with `Retry-After`. Errors are
google.rpc.Status in the request's encoding, but for 429 and 403, whose JSON the contract fixes. No answer holds any
part of a token or of a body.
"""

from dataclasses import dataclass, field
from http import HTTPStatus

import orjson
from google.rpc.code_pb2 import Code  # type: ignore[import-untyped]  # it ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from metering.otlp.decode import Summary
from metering.otlp.limiter import retry_after

PROTOBUF = b"application/x-protobuf"
JSON = b"application/json"
MAX_NAMED = 5
"""Reasons that a partial success names; the numbers of all are in the metrics."""

Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    body: bytes
    content_type: bytes
    more: Headers = field(default=())

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """All headers, the length included."""
        return [
            (b"content-type", self.content_type),
            (b"content-length", str(len(self.body)).encode()),
            *self.more,
        ]


def accepted(summary: Summary, *, is_json: bool) -> Answer:
    """200: the sink has every record but those that are counted as rejected."""
    named = ""
    if summary.rejected:
        totals: dict[str, int] = {}
        for (_, reason), count in summary.dropped.items():
            totals[reason.value] = totals.get(reason.value, 0) + count
        most = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:MAX_NAMED]
        named = "dropped for " + ", ".join(f"{reason}: {count}" for reason, count in most)
    if is_json:
        partial = {"rejectedLogRecords": str(summary.rejected), "errorMessage": named}
        document = {"partialSuccess": partial} if summary.rejected else {}
        return Answer(HTTPStatus.OK, orjson.dumps(document), JSON)
    response = ExportLogsServiceResponse()
    if summary.rejected:
        response.partial_success.rejected_log_records = summary.rejected
        response.partial_success.error_message = named
    return Answer(HTTPStatus.OK, response.SerializeToString(), PROTOBUF)


def _status(http: HTTPStatus, code: int, message: str, *, is_json: bool, more: Headers = ()) -> Answer:
    if is_json:
        return Answer(http, orjson.dumps({"code": code, "message": message}), JSON, more)
    return Answer(http, Status(code=code, message=message).SerializeToString(), PROTOBUF, more)


def malformed(message: str, *, is_json: bool) -> Answer:
    """400."""
    return _status(HTTPStatus.BAD_REQUEST, Code.INVALID_ARGUMENT, message, is_json=is_json)


def unauthenticated(*, is_json: bool) -> Answer:
    """401, the same for every reason: which one is for the operator's metric and log."""
    message = "The bearer token is not accepted. Use the present PRIMARY token of the cluster."
    more = ((b"www-authenticate", b"Bearer"),)
    return _status(HTTPStatus.UNAUTHORIZED, Code.UNAUTHENTICATED, message, is_json=is_json, more=more)


def other_signal() -> Answer:
    """403 for metrics and traces."""
    return Answer(HTTPStatus.FORBIDDEN, orjson.dumps({"code": 40301, "message": "only logs are accepted"}), JSON)


def not_found(*, is_json: bool) -> Answer:
    """404: also for a trailing slash, because a redirect would lose the body."""
    return _status(HTTPStatus.NOT_FOUND, Code.NOT_FOUND, "There is nothing here. Send to /v1/logs.", is_json=is_json)


def not_allowed(allowed: bytes, *, is_json: bool) -> Answer:
    """405."""
    more = ((b"allow", allowed),)
    message = f"Only {allowed.decode()} is allowed here."
    return _status(HTTPStatus.METHOD_NOT_ALLOWED, Code.UNIMPLEMENTED, message, is_json=is_json, more=more)


def too_large(message: str, *, is_json: bool) -> Answer:
    """413."""
    return _status(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, Code.INVALID_ARGUMENT, message, is_json=is_json)


def unsupported(message: str, *, is_json: bool) -> Answer:
    """415."""
    return _status(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, Code.INVALID_ARGUMENT, message, is_json=is_json)


def too_many_requests() -> Answer:
    """429."""
    body = orjson.dumps({"code": 42900, "message": "too many requests"})
    return Answer(HTTPStatus.TOO_MANY_REQUESTS, body, JSON, ((b"retry-after", retry_after().encode()),))


def unavailable(*, is_json: bool) -> Answer:
    """503: nothing is lost if the client comes again."""
    more = ((b"retry-after", retry_after().encode()),)
    message = "The events are not taken at the moment. Send them again."
    return _status(HTTPStatus.SERVICE_UNAVAILABLE, Code.UNAVAILABLE, message, is_json=is_json, more=more)

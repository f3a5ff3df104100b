"""A real receiver on the test databases, and a client that can also behave badly."""

import gzip
import http.client
import json
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from prometheus_client.parser import text_string_to_metric_families

from tests.crash.processes import Crew, Process
from tests.ground.system import descendants
from tests.ground.waiting import until

PROTOBUF = "application/x-protobuf"
PLENTY = "1000000"
COMMAND = ("-m", "tests.crash.worker", "receive_telemetry")


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def rejected(self) -> tuple[int, str]:
        """The partial success of a protobuf answer."""
        partial = ExportLogsServiceResponse.FromString(self.body).partial_success
        return partial.rejected_log_records, partial.error_message

    @property
    def error(self) -> tuple[int, str]:
        """google.rpc.Status of a protobuf answer."""
        assert self.headers["content-type"] == PROTOBUF
        status = Status.FromString(self.body)
        return status.code, status.message

    @property
    def json(self) -> Any:
        """A JSON answer."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)


@dataclass(slots=True)
class Server:
    """One receiver with its processes."""

    port: int
    parent: Process
    token: str = field(default="", repr=False)

    def post(
        self,
        body: bytes | Iterable[bytes],
        *,
        path: str = "/v1/logs",
        token: str | None = None,
        method: str = "POST",
        chunked: bool = False,
        **headers: str | None,
    ) -> Answer:
        """Send a body; `headers` replaces or, with None, leaves out (underscores are dashes)."""
        sent = {
            "content-type": PROTOBUF,
            "authorization": f"Bearer {self.token if token is None else token}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kept = {name: value for name, value in sent.items() if value is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body, kept, encode_chunked=chunked)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def post_gzip(self, body: bytes, **named: Any) -> Answer:
        """Send a body as gzip."""
        return self.post(gzip.compress(body, 1), content_encoding="gzip", **named)

    def get(self, path: str, **headers: Any) -> Answer:
        """A GET without token or body."""
        return self.post(b"", path=path, method="GET", content_type=None, authorization=None, **headers)

    def counted(self, name: str, **labels: str) -> float:
        """The value of a counter, 0 where it never counted."""
        text = self.get("/metrics").body.decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return sum(sample.value for sample in samples if sample.name == name and sample.labels == labels)

    def processes(self) -> list[int]:
        """The processes that answer."""
        return descendants(self.parent.pid)

    @contextmanager
    def socket(self) -> Iterator[socket.socket]:
        """A bare connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            yield connection

    def head(self, *, token: str | None = None, **headers: str) -> bytes:
        """The head of a request for a bare connection."""
        lines = [
            "POST /v1/logs HTTP/1.1",
            "Host: x",
            f"Content-Type: {PROTOBUF}",
            f"Authorization: Bearer {self.token if token is None else token}",
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def start(crew: Crew, *, wait: bool = True, **environment: str) -> Server:
    """A receiver with one process, any rate and a store, unless the environment says otherwise."""
    port = free_port()
    chosen = {
        "OTLP_PORT": str(port),
        "OTLP_PROCESSES": "1",
        "OTLP_SINK_TYPE": "timescale",
        "OTLP_RATE_PER_SECOND": PLENTY,
        "OTLP_RATE_BURST": PLENTY,
        **environment,
    }
    server = Server(port, crew.start(COMMAND, **chosen))
    if wait:
        until(lambda: _is_live(server) or server.parent.poll() is not None, patience=120)
        assert server.parent.poll() is None, server.parent.said()
    return server


def _is_live(server: Server) -> bool:
    try:
        return server.get("/health/live").status == 200
    except OSError:
        return False


def until_closed(connection: socket.socket) -> bytes:
    """Everything that comes until the server closes the connection."""
    received = bytearray()
    with suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    return bytes(received)

"""Send batches to a receiver as a collector does: again after 429, 502, 503, 504 or silence, after nothing else."""

import http.client
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from config.replay.telemetry_events import Batch

AGAIN = frozenset({429, 502, 503, 504})
LONGEST_PAUSE = 5.0


class NotTaken(RuntimeError):
    """The receiver refused a request for good, or did not answer for as long as this waits."""


@dataclass(slots=True)
class Sender:
    """One connection to the receiver at `url`, kept from batch to batch. Use it as a context."""

    url: str
    tokens: Mapping[int, str]
    patience: float
    """Seconds that one batch is tried for."""
    sent: int = 0
    rejected: int = 0
    resent: int = 0
    pause: Callable[[float], None] = time.sleep
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def __enter__(self) -> "Sender":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def send(self, batch: Batch) -> None:
        """Return when the receiver has the batch. Raises `NotTaken`."""
        deadline, last = time.monotonic() + self.patience, "no answer"
        while time.monotonic() < deadline:
            try:
                status, after, body = self._post(batch)
            except (OSError, http.client.HTTPException) as error:
                self._close()
                last, after = type(error).__name__, 1.0
            else:
                if status == http.client.OK:
                    self.sent += batch.records
                    self.rejected += _rejected(body)
                    return
                last = f"{status} {body[:200]!r}"
                if status not in AGAIN:
                    break
            self.resent += 1
            self.pause(min(after, LONGEST_PAUSE))
        raise NotTaken(f"{self.url}/v1/logs did not take {batch.records} records of cluster {batch.cluster_id}: {last}")

    def _post(self, batch: Batch) -> tuple[int, float, bytes]:
        if self._connection is None:
            parts = urlsplit(self.url)
            self._connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=30)
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "Authorization": f"Bearer {self.tokens[batch.cluster_id]}",
        }
        self._connection.request("POST", "/v1/logs", batch.body, headers)
        answer = self._connection.getresponse()
        after = answer.headers.get("Retry-After", "1")
        return answer.status, float(after) if after.isdigit() else 1.0, answer.read()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _rejected(body: bytes) -> int:
    try:
        return int(ExportLogsServiceResponse.FromString(body).partial_success.rejected_log_records)
    except DecodeError:
        return 0

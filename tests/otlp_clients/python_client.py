"""Sends billing events with the OpenTelemetry Python SDK and its OTLP/HTTP exporter, in a process of its own.

`python -m tests.otlp_clients.python_client PREFIX BASE`, and the same lines as javascript/send.mjs.
"""

import logging
import os
import sys

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.util.types import AnyValue

TIMEOUT_SECONDS = 120
NANOSECONDS = 10**9


def main(prefix: str, base: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
    provider = LoggerProvider(resource=Resource({"k8s.pod.uid": "pod-of-python"}), shutdown_on_exit=False)
    provider.add_log_record_processor(
        BatchLogRecordProcessor(
            OTLPLogExporter(timeout=TIMEOUT_SECONDS, compression=Compression.Gzip),
            schedule_delay_millis=20,
            max_export_batch_size=int(os.environ["BATCH"]),
        )
    )
    logger = provider.get_logger("billing")
    for done, line in enumerate(sys.stdin, start=1):
        match line.split():
            case ["emit", first, count]:
                for number in range(int(first), int(first) + int(count)):
                    attributes: dict[str, AnyValue] = {
                        "event_type": "llm_billing",
                        "event_id": f"{prefix}-{number}",
                        "tenant_name": "tenant",
                        "namespace": "tenant",
                        "model_name": "model-a",
                        "provider": "provider-a",
                        "prompt_tokens": number,
                        "completion_tokens": 7,
                        "organization_id": "org-1",
                    }
                    logger.emit(LogRecord(timestamp=(base + number) * NANOSECONDS + 500, attributes=attributes))
            case ["flush"]:
                provider.force_flush(TIMEOUT_SECONDS * 1000)
        print(f"done {done}", flush=True)
    provider.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

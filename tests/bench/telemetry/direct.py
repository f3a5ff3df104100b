"""Child: the receiver's work without HTTP, or only its decoding, on the bodies that a sender would send."""

import argparse
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import django

from tests.bench import children
from tests.bench.telemetry.bodies import bodies


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only-decode", action="store_true")
    chosen = parser.parse_args()
    django.setup()
    from django.conf import settings
    from django.db import connections

    from metering.clusters.authenticate import Authenticated
    from metering.clusters.models import Mode
    from metering.otlp import days
    from metering.otlp.decode import Summary, decode
    from metering.otlp.inflate import inflate
    from metering.otlp.read_record import Rules
    from metering.otlp.receive import Request, receive

    who = Authenticated(cluster_id=1, token_id=uuid.uuid4(), mode=Mode.GATEWAY, sink=None)
    rules = Rules(needs_manager_key=True, latest=2**62, earliest=days.NOTHING_GONE)
    made = list(bodies(records=chosen.records, batch=chosen.batch, seed=chosen.seed, ends_at=int(time.time())))

    def whole(body: bytes) -> int:
        request = Request(body=body, is_gzip=True, is_json=False, who=who, received_at=datetime.now(UTC))
        return receive(request).accepted.total()

    def decoded(body: bytes) -> int:
        summary = Summary()
        plain = inflate(body, most=settings.OTLP_MAX_INFLATED_BYTES)
        for _ in decode(plain, rules=rules, summary=summary):
            pass
        return summary.accepted.total()

    work = decoded if chosen.only_decode else whole
    with ThreadPoolExecutor(settings.OTLP_THREADS) as threads:
        list(threads.map(lambda _: connections["telemetry"].ensure_connection(), range(settings.OTLP_THREADS)))
        children.wait_for_start()
        accepted = sum(threads.map(work, made))
    children.answer(accepted=accepted)


if __name__ == "__main__":
    main()

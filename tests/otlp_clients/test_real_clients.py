"""OpenTelemetry's own clients lose nothing and repeat nothing, whatever happens to the receiver meanwhile."""

import signal
from datetime import UTC, datetime

import pytest

from tests.crash.processes import Crew
from tests.crash.site import Site
from tests.ground.waiting import until
from tests.otlp_clients.clients import BASE, Client, Kind
from tests.otlp_clients.receiver import Receiver

pytestmark = pytest.mark.parametrize("kind", Kind)


@pytest.mark.spec("T1", "T5", "T6")
def test_every_event_is_stored_once_as_it_was_sent(receiver: Receiver, clients: Crew, kind: Kind) -> None:
    cluster = receiver.cluster()
    client = Client(clients, kind, prefix=kind, url=receiver.url, token=cluster.token)
    client.emit(0, 450)
    client.close()
    assert receiver.stored(cluster) == (450, 450)
    rows = receiver.rows(cluster)
    assert [row["event_id"] for row in rows] == [f"{kind}-{number}" for number in range(450)]
    last = rows[-1]
    assert datetime.fromisoformat(last["occurred_at"]) == datetime.fromtimestamp(BASE + 449, tz=UTC)
    assert (last["completion_tokens"], last["organization_id"], last["model_name"]) == (7, "org-1", "model-a")
    assert last["k8s_pod_uid"] == f"pod-of-{kind.partition('-')[0]}"


@pytest.mark.spec("T6")
@pytest.mark.trap("T4")
def test_a_restart_of_postgresql_in_between_loses_and_repeats_nothing(
    site: Site, receiver: Receiver, clients: Crew, kind: Kind
) -> None:
    cluster = receiver.cluster()
    client = Client(clients, kind, prefix=f"pg-{kind}", url=receiver.url, token=cluster.token)
    client.emit(0, 300)
    client.flush()
    before = receiver.counted("otlp_unavailable_total")
    site.kill_server("postgres", signal.SIGKILL)
    client.emit(300, 300)
    until(lambda: receiver.counted("otlp_unavailable_total") > before)
    site.revive_server("postgres")
    client.emit(600, 300)
    client.close()
    assert receiver.stored(cluster) == (900, 900)


@pytest.mark.spec("T2", "T3")
@pytest.mark.trap("T10")
def test_a_rotation_in_between_loses_and_repeats_nothing(receiver: Receiver, clients: Crew, kind: Kind) -> None:
    cluster = receiver.cluster()
    before = Client(clients, kind, prefix=f"old-{kind}", url=receiver.url, token=cluster.token)
    before.emit(0, 150)
    token = receiver.rotate(cluster.number)
    before.emit(150, 150)
    after = Client(clients, kind, prefix=f"new-{kind}", url=receiver.url, token=token)
    after.emit(0, 300)
    before.emit(300, 150)
    before.close()
    after.close()
    assert receiver.stored(cluster) == (750, 750)


@pytest.mark.spec("T9")
def test_a_client_that_is_too_fast_waits_and_loses_nothing(receiver: Receiver, clients: Crew, kind: Kind) -> None:
    cluster = receiver.cluster(slow=True)
    before = receiver.counted("otlp_rate_limited_total")
    client = Client(clients, kind, prefix=f"fast-{kind}", url=receiver.url, token=cluster.token, batch=20)
    client.emit(0, 100)
    client.close()
    assert receiver.counted("otlp_rate_limited_total") > before
    assert receiver.stored(cluster) == (100, 100)

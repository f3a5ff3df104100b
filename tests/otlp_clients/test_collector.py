"""The collector's configuration in deploy/otel-collector fits the receiver: where, how large, how often, and whose."""

import gzip
import secrets
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from django.conf import settings

from metering.otlp.body import MAX_BODY_BYTES
from metering.otlp.fields import COLUMNS, Field
from tests.crash.processes import Crew, Process
from tests.crash.site import Site
from tests.ground.waiting import until
from tests.otlp.make import ABSENT, body, llm
from tests.otlp_clients.clients import Client, Kind, becoming
from tests.otlp_clients.collector import PLACE, RETRYABLE, attribution, configuration, required
from tests.otlp_clients.receiver import Cluster, Receiver

COLLECTOR = shutil.which("otelcol-contrib")
ADDRESS = "127.0.0.7"
"""A loopback address of its own, as the configuration's ports are fixed."""
GIVEN = {"BILLING_TENANT_NAME": "0123", "BILLING_NAMESPACE": "0123", "BILLING_ORGANIZATION_ID": "org-9"}


def variables(receiver: Receiver, cluster: Cluster) -> dict[str, str]:
    """What a deployment sets."""
    return {"OTLP_BILLING_ENDPOINT": receiver.url, "OTLP_BILLING_TOKEN": cluster.token, "POD_IP": ADDRESS, **GIVEN}


@pytest.fixture(scope="module")
def read() -> Any:
    """The configuration, with values that are nobody's."""
    return configuration(dict.fromkeys(required(), "x"))


def post(found: Any, data: bytes) -> requests.Response:
    """What the exporter of the configuration sends."""
    exporter = found["exporters"]["otlphttp/billing"]
    headers = {**exporter["headers"], "content-type": "application/x-protobuf", "content-encoding": "gzip"}
    return requests.post(f"{exporter['endpoint']}/v1/logs", data=gzip.compress(data, 1), headers=headers, timeout=60)


@pytest.mark.spec("T1")
def test_its_queue_is_on_disk_and_everything_waits_there(read: Any) -> None:
    exporter = read["exporters"]["otlphttp/billing"]
    storage = exporter["sending_queue"]["storage"]
    assert storage in read["service"]["extensions"]
    assert read["extensions"][storage]["fsync"] is True
    pipelines = read["service"]["pipelines"]
    assert list(pipelines) == ["logs/billing"]
    assert pipelines["logs/billing"]["exporters"] == ["otlphttp/billing"]
    assert not [name for name in pipelines["logs/billing"]["processors"] if name.startswith("batch")]
    assert set(pipelines["logs/billing"]["processors"]) == set(read["processors"])
    assert (exporter["sending_queue"]["num_consumers"], exporter["sending_queue"]["queue_size"]) == (4, 10_000)


@pytest.mark.spec("T9")
def test_it_tries_again_as_the_contract_says(read: Any) -> None:
    assert read["exporters"]["otlphttp/billing"]["retry_on_failure"] == {
        "enabled": True,
        "initial_interval": "5s",
        "max_interval": "300s",
        "max_elapsed_time": "6h",
    }


@pytest.mark.spec("T5")
def test_it_sets_whose_an_event_is_and_nothing_else(read: Any) -> None:
    names = {"tenant_name", "namespace", "organization_id", "robot_id", "cr_name"}
    assert set(attribution(read)) == names
    assert names < set(Field)
    for columns in COLUMNS.values():
        assert names <= {column.name for column in columns}


def test_what_runs_it_gives_it_everything_it_needs() -> None:
    stateful, service = yaml.safe_load_all((PLACE / "statefulset.yaml").read_text())
    pod = stateful["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    given = {variable["name"]: variable for variable in container["env"]}
    assert required() <= set(given)
    secret = given["OTLP_BILLING_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "tfrs-otlp-bearer", "key": "token"}
    (claim,) = stateful["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: Path(mount["mountPath"]) for mount in container["volumeMounts"]}
    queue = configuration(dict.fromkeys(required(), "x"))["extensions"]["file_storage/billing"]["directory"]
    assert Path(queue).is_relative_to(mounts[claim["metadata"]["name"]])
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert {port["port"] for port in service["spec"]["ports"]} == {4317, 4318}
    made = yaml.safe_load((PLACE / "kustomization.yaml").read_text())["configMapGenerator"][0]
    assert made["name"] in {volume.get("configMap", {}).get("name") for volume in pod["volumes"]}


@pytest.mark.spec("T1")
@pytest.mark.trap("T2")
def test_its_largest_batch_is_taken_even_where_nothing_compresses(receiver: Receiver) -> None:
    cluster = receiver.cluster()
    found = configuration(variables(receiver, cluster))
    most = found["exporters"]["otlphttp/billing"]["sending_queue"]["batch"]["max_size"]
    assert most < MAX_BODY_BYTES
    assert most < settings.OTLP_MAX_INFLATED_BYTES
    noise = [llm(f"large-{number}", note=secrets.token_bytes(100_000)) for number in range(most // 101_000)]
    data = body(noise)
    assert most * 0.95 < len(data) <= most
    answer = post(found, data)
    assert (answer.status_code, answer.content) == (200, b"")
    assert receiver.stored(cluster) == (len(noise), len(noise))


@pytest.mark.spec("T4", "T5")
def test_events_without_attribution_are_stored_under_what_it_sets(receiver: Receiver) -> None:
    cluster = receiver.cluster()
    found = configuration(variables(receiver, cluster))
    bare: dict[str, Any] = {"tenant_name": ABSENT, "namespace": "what a producer claims"}
    assert post(found, body([llm("bare", **bare)])).content != b""
    assert post(found, body([llm("attributed", **{**bare, **attribution(found)})])).content == b""
    (row,) = receiver.rows(cluster)
    assert {name: row[name] for name in ("event_id", "tenant_name", "namespace", "organization_id", "robot_id")} == {
        "event_id": "attributed",
        "tenant_name": "0123",
        "namespace": "0123",
        "organization_id": "org-9",
        "robot_id": None,
    }


@pytest.mark.spec("T9")
def test_too_fast_and_not_now_are_answers_at_which_it_keeps_its_data(site: Site, receiver: Receiver) -> None:
    slow, quick = receiver.cluster(slow=True), receiver.cluster()
    too_fast = configuration(variables(receiver, slow))
    answers: list[requests.Response] = []
    until(lambda: answers.append(post(too_fast, body([]))) or answers[-1].status_code != 200)  # type: ignore[func-returns-value]  # it only appends
    found = configuration(variables(receiver, quick))
    site.kill_server("postgres", signal.SIGKILL)
    answers.append(post(found, body([llm("kept")])))
    site.revive_server("postgres")
    assert [answer.status_code for answer in answers[-2:]] == [429, 503]
    for answer in answers[-2:]:
        assert answer.status_code in RETRYABLE
        assert 1 <= int(answer.headers["retry-after"]) <= 5
    until(lambda: post(found, body([llm("kept")])).status_code == 200)
    assert receiver.stored(quick) == (1, 1)


@pytest.fixture
def collector(receiver: Receiver, clients: Crew, tmp_path: Path) -> Callable[[Cluster], Process]:
    """Starts the real collector with the configuration."""
    if COLLECTOR is None:
        pytest.skip("otelcol-contrib is not installed here, so its configuration was only read")
    program = becoming(Path(COLLECTOR), "--config", str(PLACE / "config.yaml"))

    def start(cluster: Cluster) -> Process:
        given = {**variables(receiver, cluster), "BILLING_QUEUE_DIRECTORY": str(tmp_path / "queue")}
        process = clients.start(program, **given)
        until(lambda: process.poll() is not None or is_healthy())
        assert process.poll() is None, process.said()
        return process

    return start


def is_healthy() -> bool:
    """Whether the collector's health check answers."""
    try:
        return requests.get(f"http://{ADDRESS}:13133/", timeout=5).ok
    except requests.ConnectionError:
        return False


@pytest.mark.slow
@pytest.mark.spec("T6")
def test_a_real_collector_that_is_killed_loses_and_repeats_nothing(
    collector: Callable[[Cluster], Process], receiver: Receiver, clients: Crew
) -> None:
    cluster = receiver.cluster()
    running = collector(cluster)
    client = Client(clients, Kind.PYTHON, prefix="collected", url=f"http://{ADDRESS}:4318", token="none")
    client.emit(0, 1_000)
    client.flush()
    running.kill()
    running.wait()
    collector(cluster)
    client.emit(1_000, 1_000)
    client.close()
    until(lambda: receiver.stored(cluster) == (2_000, 2_000))

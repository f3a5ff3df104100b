"""The gauges of consumption say how far it is and what nobody is charged for."""

import pytest
from django.db import connections

from config.gauges import samples
from tests.consumption.make import HOUR, WINDOW, learn, llm, receive, sample, swept
from tests.telemetry_charges.make import payer

pytestmark = [pytest.mark.usefixtures("database"), pytest.mark.spec("T11", "T13")]


def gauges() -> dict[tuple[str, ...], float]:
    """Every gauge of consumption that is not zero, by name and labels."""
    found = {(one.name, *one.labels): one.value for one in samples(patience=30)}
    assert found["owner_section_up", "telemetry", "consumption"] == 1
    return {key: value for key, value in found.items() if key[0].startswith("consumption_") and value}


def age(seconds: int) -> None:
    """Let everything that waits have waited for so long."""
    with connections["telemetry"].cursor() as cursor:
        cursor.execute(
            "UPDATE consumption_windows_dirty SET marked_at = marked_at - make_interval(secs => %s)", [seconds]
        )
        cursor.execute("UPDATE consumption_charges SET changed_at = changed_at - make_interval(secs => %s)", [seconds])


def test_all_of_it_is_zero_when_nothing_waits() -> None:
    payer()
    learn(k101="org-1")
    receive(llm())
    swept()
    assert gauges() == {}


def test_windows_orphans_and_unposted_charges_are_counted_with_the_age_of_the_oldest() -> None:
    learn(k101="org-1")
    receive(llm(), llm(manager_key_id="404"), llm(model_name="large-1"))
    receive(sample(organization_id=None), mode="per_cluster")
    swept()
    receive(llm(WINDOW + HOUR), llm(WINDOW + 2 * HOUR))
    age(5000)
    found = gauges()
    counts = {key: value for key, value in found.items() if "seconds" not in key[0]}
    assert counts == {
        ("consumption_windows_due",): 2,
        ("consumption_orphan_lines", "unknown_key"): 1,
        ("consumption_orphan_lines", "no_organization"): 1,
        ("consumption_unposted_charges", "refused", "no_account"): 2,
    }
    assert 5000 <= found["consumption_oldest_due_window_seconds",] < 6000
    assert 5000 <= found["consumption_oldest_unposted_charge_seconds", "refused", "no_account"] < 6000
    assert 0 < found["consumption_oldest_orphan_seconds", "unknown_key"] < 1000


def test_a_window_that_is_not_over_is_not_due() -> None:
    with connections["telemetry"].cursor() as cursor:
        cursor.execute(
            "INSERT INTO consumption_windows_dirty (kind, cluster_id, window_start, marked_at)"
            " VALUES ('llm_billing', '7', date_trunc('hour', now()), now() - interval '3 hours')"
        )
    assert gauges() == {}

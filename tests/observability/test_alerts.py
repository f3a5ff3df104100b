"""Alert rules, their tests, their runbook pages, and the dashboard use the metrics that exist, and nothing else."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.metrics import all_metrics
from metering.otlp.metrics import REASONS
from outbox.metrics import Kind

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*.rules.yml"))
RULE_TESTS = sorted((ROOT / "deploy" / "prometheus" / "tests").glob("*.yml"))
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
RUNBOOK = ROOT / "docs" / "runbook"
SECTIONS = ("## What it means", "## What to look at", "## What to do", "## What not to do")
OURS = re.compile(
    r"\b(?:outbox|owner|operations|billing|backbone|otlp|consumption|commercial|files|connectors|api)_[a-z_]+\b"
)
PREFIXES = ("outbox_", "operations_", "billing_", "commercial_", "files_", "connectors_")
ALERT = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b")
SUBJECTS = {
    "outbox_oldest_pending_seconds": "oldest pending age per destination, also when no worker runs",
    "awaiting_consumer": "a destination without a consumer",
    "outbox_last_quarantined_timestamp_seconds": "quarantine growth",
    "outbox_lease_expired_total": "lease expiry rate",
    "outbox_ack_rejected_total": "refused acks",
    "outbox_fenced_total": "late results",
    "outbox_apply_delay_seconds_bucket": "consumer apply delay",
    "owner_idle_in_transaction_seconds": "idle in transaction",
    "owner_dead_tuples": "dead tuples",
    "owner_up": "a database that is down",
    "up{": "a scrape that is missing",
    "outbox_worker_processes": "no worker",
    "operations_oldest_revision_gap_seconds": "gaps open for long",
    "commercial_oldest_held_seconds": "quota held for long",
    "commercial_swept_total": "findings of sweeps",
    "commercial_callbacks_failed_total": "failing completions",
    "files_failing_changes": "stored files that could not be put back",
    "files_oldest_open_seconds": "changes of stored files open for long",
    "files_swept_total": "findings of sweeps of stored files",
    "connectors_auth_failed_total": "signatures of connectors that fail",
    'connectors_requests_total{outcome="conflicting"}': "payloads that contradict an accepted event",
    "billing_oldest_unconfirmed_hold_seconds": "holds unconfirmed for long",
    "consumption_oldest_due_window_seconds": "windows not summed up for long",
    "consumption_oldest_orphan_seconds": "usage that nobody is charged for",
    "consumption_oldest_unposted_charge_seconds": "charges that are not posted for long",
    'consumption_unposted_charges{state="conflicting"}': "charges that stand otherwise at billing",
}
NO_ALERTS = {
    "CommercialUnavailable",
    "DifferentFilesystems",
    "InterfaceError",
    "NotCommitted",
    "OperationalError",
    "PathInFlight",
    "PostgreSQL",
    "SealBroken",
    "StorageFailed",
    "StorageFull",
    "TimeUnixNano",
    "TreeContradicts",
}
"""Words of pages that are written like alerts."""
CONTRACT = {
    "OtlpTokenNotAccepted": 'rate(otlp_auth_failed_total{reason=~"token_not_found|token_expired|token_revoked"}[5m])',
    "OtlpEventsStopped": "increase(otlp_events_ingested_total[15m])",
    "OtlpOccurredAtMissing": 'increase(otlp_dropped_total{reason="occurred_at"}[10m])',
    "OtlpManagerKeyMissing": 'increase(otlp_dropped_total{reason="manager_key_id"}[10m])',
}
"""What the receiver's contract wants watched, over which time (T11)."""


def alerts() -> dict[str, dict[str, Any]]:
    """Every alert by name."""
    found = [rule for path in RULES for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in found}) == len(found)
    return {rule["alert"]: rule for rule in found}


def known_series() -> set[str]:
    """Every series name that the tables promise."""
    names = set()
    for metric in all_metrics():
        suffixes = ("_bucket", "_sum", "_count") if metric.kind is Kind.HISTOGRAM else ("",)
        names |= {metric.name + suffix for suffix in suffixes}
    return names


def used_series(expression: str) -> set[str]:
    """Our series names in a PromQL expression: no label names, no strings."""
    without_labels = re.sub(r"\{[^}]*\}|(?:by|on|without)\s*\([^)]*\)|\"[^\"]*\"", "", expression)
    return set(OURS.findall(without_labels))


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool, or skip the test where it is not installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed; Debian has it in the package prometheus")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.spec("O33")
def test_every_rule_is_valid_and_its_promtool_test_passes() -> None:
    for path in RULES:
        done = promtool("check", "rules", path)
        assert done.returncode == 0, done.stdout + done.stderr
    for path in RULE_TESTS:
        done = promtool("test", "rules", path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.spec("O33")
def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_keeps_silent() -> None:
    fires: set[str] = set()
    silent: set[str] = set()
    for path in RULE_TESTS:
        for group in yaml.safe_load(path.read_text())["tests"]:
            for case in group["alert_rule_test"]:
                (fires if case["exp_alerts"] else silent).add(case["alertname"])
    assert fires == silent == set(alerts())


@pytest.mark.spec("O33")
def test_every_alert_has_a_runbook_page_that_says_what_to_do_and_what_not() -> None:
    assert {path.stem for path in RUNBOOK.glob("*.md") if ALERT.fullmatch(path.stem)} == set(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/runbook/{name}.md"
        text = (ROOT / rule["annotations"]["runbook"]).read_text()
        assert text.startswith(f"# {name}\n")
        assert f"Severity: {rule['labels']['severity']} " in text
        for section in SECTIONS:
            assert section in text, f"{name}: {section}"
        for other in ALERT.findall(text):
            assert other in alerts() or other in NO_ALERTS, f"{name} names the alert {other}, which does not exist"


@pytest.mark.spec("O33")
def test_rules_and_pages_use_metrics_that_exist() -> None:
    known = known_series()
    for name, rule in alerts().items():
        assert used_series(rule["expr"]) <= known, name
        assert used_series(rule["expr"]) or "up{" in rule["expr"], name
        histograms = {metric.name for metric in all_metrics() if metric.kind is Kind.HISTOGRAM}
        page = set(OURS.findall((RUNBOOK / f"{name}.md").read_text()))
        metrics = {word for word in page if word in known or word.startswith(PREFIXES)}
        assert metrics - {"outbox_deliveries"} <= known | histograms, name


@pytest.mark.spec("O33")
@pytest.mark.trap("D19", "D22")
@pytest.mark.parametrize("subject", SUBJECTS, ids=list(SUBJECTS.values()))
def test_there_is_an_alert_for(subject: str) -> None:
    assert any(subject in rule["expr"] for rule in alerts().values())


@pytest.mark.spec("T11")
@pytest.mark.parametrize("name", CONTRACT)
def test_the_rules_of_the_receivers_contract_are_there(name: str) -> None:
    assert CONTRACT[name] in alerts()[name]["expr"]


@pytest.mark.spec("T11")
@pytest.mark.parametrize("subject", ["otlp_refused_bodies_total", "otlp_conflicts_total", "otlp_unavailable_total"])
def test_there_is_an_alert_for_what_the_receiver_does_not_store(subject: str) -> None:
    assert any(subject in rule["expr"] for rule in alerts().values())


@pytest.mark.spec("T11")
def test_every_reason_to_drop_a_record_raises_an_alert() -> None:
    named = {reason for reason in REASONS["otlp_dropped_total"] if f'{{reason="{reason}"}}' in str(alerts())}
    left_out = re.findall(r'reason!~"([^"]+)"', alerts()["OtlpRecordsDropped"]["expr"])
    assert set(left_out[0].split("|")) == named == {"occurred_at", "manager_key_id"}


@pytest.mark.spec("O33")
@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_the_dashboard_uses_metrics_that_exist_and_shows_each_of_them(path: Path) -> None:
    dashboard = json.loads(path.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    used: set[str] = set()
    for panel in panels:
        for target in panel.get("targets", []):
            assert used_series(target["expr"]) <= known_series(), panel["title"]
            used |= used_series(target["expr"])
        assert panel["type"] == "row" or panel["targets"], panel["title"]
    shown = {metric.name for metric in all_metrics() if metric.kind is not Kind.HISTOGRAM}
    assert shown <= used, f"not shown: {sorted(shown - used)}"


def test_the_scrape_configuration_names_the_rules_and_the_page() -> None:
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    assert config["rule_files"] == ["*.rules.yml"]
    assert {job["metrics_path"] for job in config["scrape_configs"]} == {"/metrics"}
    done = promtool("check", "config", ROOT / "deploy" / "prometheus" / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr

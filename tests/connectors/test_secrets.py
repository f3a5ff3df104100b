"""Secrets rotate without an event being refused, end when their grace is over or at once, and are never stored open."""

import sys
from io import StringIO
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError

from attachments.connectors.rotate import MOST_ACCEPTED
from attachments.connectors.signature import Secret
from tests.commercial.make import rows
from tests.connectors.conftest import MakeProvider, connectors, said_secret, said_secret_id
from tests.connectors.facts import READ, events
from tests.connectors.provider import Event, Provider
from tests.upstream.threads import in_threads
from tests.verify.tamper import tamper

EXPIRE = (
    "UPDATE financial_connector_secrets SET superseded_at = now() - interval '2 s', expires_at = now()"
    " WHERE state = 'superseded'"
)
pytestmark = [pytest.mark.spec("C4")]


def test_during_the_grace_old_new_and_both_are_accepted_and_afterwards_the_new_one_alone(provider: Provider) -> None:
    said = connectors("rotate", provider.connector_id)
    new, both = provider.with_secrets(said_secret(said)), provider.with_secrets(*provider.secrets, said_secret(said))
    assert "the one before is accepted until" in said
    for signing in (provider, new, both):
        assert signing.send().status == 200
    tamper("attachments", EXPIRE)
    assert [signing.send().status for signing in (provider, new, both)] == [401, 200, 200]
    assert events() == 5


def test_a_replay_after_a_rotation_is_the_same_event(provider: Provider) -> None:
    event = Event()
    first = provider.send(event)
    new = provider.with_secrets(said_secret(connectors("rotate", provider.connector_id)))
    assert new.send(event).told == first.told
    assert events() == 1


def test_a_revoked_secret_is_refused_with_the_next_request(provider: Provider) -> None:
    said = connectors("rotate", provider.connector_id)
    new = provider.with_secrets(said_secret(said))
    (old,) = rows("SELECT secret_id FROM financial_connector_secrets WHERE state = 'superseded'", alias=READ)[0]
    assert provider.send().status == 200
    assert "1 revoked" in connectors("revoke", provider.connector_id, str(old))
    assert [provider.send().status, new.send().status] == [401, 200]
    assert "nothing changed" in connectors("revoke", provider.connector_id, str(old))
    connectors("revoke", provider.connector_id, said_secret_id(said))
    assert new.send().status == 401
    fresh = provider.with_secrets(said_secret(connectors("rotate", provider.connector_id)))
    assert fresh.send().status == 200


def test_the_providers_own_secret_comes_from_standard_input_and_is_not_shown(
    make_provider: MakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, theirs = make_provider(), Secret.fresh()
    monkeypatch.setattr(sys, "stdin", StringIO(theirs.text + "\n"))
    said = connectors("rotate", provider.connector_id, "--given")
    assert "whsec_" not in said
    assert provider.with_secrets(theirs.text).send().status == 200
    for given, problem in ((theirs.text, "given to a connector before"), ("whsec_short", "no signing secret")):
        monkeypatch.setattr(sys, "stdin", StringIO(given))
        with pytest.raises(CommandError, match=problem):
            connectors("create", "another", "--tenant", "organization:o", "--provider", "bank_two", "--given")


def test_no_table_holds_a_secret_and_a_sealed_one_opens_in_its_own_row_only(make_provider: MakeProvider) -> None:
    one, other = make_provider(name="one"), make_provider(name="other")
    stored = "".join(text for (text,) in rows("SELECT s::text FROM financial_connector_secrets s", alias=READ))
    for provider in (one, other):
        secret = Secret.read(provider.secrets[0])
        assert secret.data.hex() not in stored
        assert provider.secrets[0][6:] not in stored
    swap = (
        "UPDATE financial_connector_secrets s SET sealed = o.sealed FROM financial_connector_secrets o"
        " WHERE o.secret_id <> s.secret_id"
    )
    assert tamper("attachments", swap) == 2
    answers = [one.send(), other.send(), other.with_secrets(*one.secrets).send()]
    assert [(answer.status, answer.problem) for answer in answers] == [(503, "unavailable")] * 3
    assert events() == 0


def test_older_sealing_keys_open_what_they_sealed_and_the_first_one_seals(
    make_provider: MakeProvider, settings: Any
) -> None:
    provider = make_provider()
    first = settings.CONNECTOR_SEALING_KEYS
    settings.CONNECTOR_SEALING_KEYS = ("a new key of more than thirty-two characters", *first)
    assert "sealed with an older key" in connectors("list", provider.connector_id)
    connectors("rotate", provider.connector_id)
    assert connectors("list", provider.connector_id).count("sealed with an older key") == 1
    assert provider.send().status == 200


@pytest.mark.parametrize("keys", [(), ("short",), ("x" * 32, "x" * 32), ("x" * 32, "")])
def test_sealing_keys_that_are_no_good_stop_the_start(settings: Any, keys: tuple[str, ...]) -> None:
    assert not [found for found in run_checks() if found.id == "connectors.E001"]
    settings.CONNECTOR_SEALING_KEYS = keys
    assert [found.id for found in run_checks() if found.id == "connectors.E001"] == ["connectors.E001"]


def test_so_many_secrets_and_no_more_are_accepted_at_once(provider: Provider) -> None:
    secrets = list(provider.secrets)
    while len(secrets) < MOST_ACCEPTED:
        secrets.append(said_secret(connectors("rotate", provider.connector_id)))
    with pytest.raises(CommandError, match="Too many"):
        connectors("rotate", provider.connector_id)
    assert {provider.with_secrets(secret).send().status for secret in secrets} == {200}
    tamper("attachments", EXPIRE)
    connectors("rotate", provider.connector_id)


def test_rotations_at_once_follow_one_another(provider: Provider) -> None:
    said = in_threads([lambda: connectors("rotate", provider.connector_id)] * 4)
    states = rows("SELECT state FROM financial_connector_secrets ORDER BY state", alias=READ)
    assert states == [("current",), *[("superseded",)] * 4]
    assert {provider.with_secrets(said_secret(one)).send().status for one in said} == {200}


def test_every_step_is_told_with_who_did_it(provider: Provider) -> None:
    connectors("rotate", provider.connector_id)
    connectors("revoke", provider.connector_id, "--all")
    acts = rows("SELECT kind FROM financial_connector_acts ORDER BY act_id", alias=READ)
    assert [kind for (kind,) in acts] == [
        "connector_created", "secret_current", "secret_superseded", "secret_current", "secret_revoked",
        "secret_revoked",
    ]  # fmt: skip
    assert rows("SELECT count(*) FROM financial_connector_acts WHERE actor = ''", alias=READ) == [(0,)]


def test_what_a_connector_may_not_be_is_refused_with_advice(provider: Provider) -> None:
    wanted = {"name": "other", "--tenant": "organization:o", "--provider": "bank_two"}
    for changed in (
        {"name": "bank"}, {"name": ""}, {"name": "x" * 201}, {"name": "a\nb"}, {"name": "a\0b"},
        {"--tenant": "organization"}, {"--tenant": "organization:"}, {"--tenant": "company:o"},
        {"--tenant": "organization:a b"}, {"--provider": "Bank"}, {"--provider": "x" * 41},
    ):  # fmt: skip
        values = wanted | changed
        with pytest.raises(CommandError, match="Permanent"):
            connectors(
                "create", values["name"], "--tenant", values["--tenant"], "--provider", values["--provider"]
            )  # fmt: skip
    nobody = "00000000-0000-7000-8000-00000000000a"
    for arguments in (("rotate", nobody), ("revoke", nobody, "--all"), ("revoke", provider.connector_id, nobody)):
        with pytest.raises(CommandError, match=r"There is no such|has no such"):
            connectors(*arguments)
    assert connectors("list").count("\n") == 1

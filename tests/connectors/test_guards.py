"""What must never happen to connectors, secrets, acts, events and conflicts is refused, to every login role."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from attachments.connectors.models import ConnectorEvent
from attachments.connectors.rotate import revoke, rotate
from config.owners import owner_named
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.conftest import empty_tables
from tests.connectors.make import ACTOR, connector, deliver

pytestmark = [pytest.mark.usefixtures("made"), pytest.mark.spec("C4")]
NEW = "00000000-0000-7000-8000-00000000000f"
SHA = "0" * 64
SEALED = "decode(repeat('00', 60), 'hex')"
CONNECTOR = """
INSERT INTO financial_connectors (connector_id, name, tenant_kind, tenant_id, provider_code, digest, candidate)
SELECT connector_id, {name}, kind, tenant, provider, encode(sha256(convert_to(text, 'UTF8')), 'hex'), text
  FROM (SELECT '{id}'::uuid AS connector_id, {kind} AS kind, {tenant} AS tenant, {provider} AS provider) c
 CROSS JOIN LATERAL (SELECT jsonb_build_object('connectorId', connector_id, 'tenantKind', {said_kind}, 'tenantId',
    tenant, 'providerCode', provider, 'financialConnectorSchemaVersion', '1',
    'financialConnectorDigestAlgorithmVersion', 'jcs-sha256-v1')::text{more} AS text) t
"""
SECRET = """
INSERT INTO financial_connector_secrets (secret_id, connector_id, sealed, sealed_with, secret_sha256, state{columns})
SELECT '{id}', connector_id, {sealed}, '{key}', '{sha}', '{state}'{values} FROM financial_connectors WHERE name = 'bank'
"""
ACT = """
INSERT INTO financial_connector_acts (kind, actor, connector_id, secret_id)
SELECT {kind}, {actor}, connector_id, {secret} FROM financial_connectors WHERE name = 'bank'
"""
EVENT = """
INSERT INTO financial_connector_events (event_id, connector_id, webhook_id, body, body_bytes, body_sha256, sent_at,
                                        secret_id)
SELECT '{id}', connector_id, {webhook}, 'x', {bytes}, {sha}, now(), {secret} FROM financial_connectors c
 WHERE name = 'bank'
"""
CONFLICT = """
INSERT INTO financial_connector_conflicts (conflict_id, event_id, body_bytes, body_sha256, sent_at, secret_id)
SELECT '{id}', event_id, {bytes}, {sha}, now(), {secret} FROM financial_connector_events e WHERE webhook_id = 'msg'
"""
CURRENT = "(SELECT secret_id FROM financial_connector_secrets s JOIN financial_connectors c USING (connector_id)"
CURRENT += " WHERE s.state = 'current' AND c.name = '{}')"
SUPERSEDE = "UPDATE financial_connector_secrets SET state = 'superseded', superseded_at = now(), expires_at = now()"
X_SHA = "'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'"
TABLES = {
    "financial_connectors": "connector",
    "financial_connector_acts": "connector_act",
    "financial_connector_events": "connector_event",
    "financial_connector_conflicts": "connector_conflict",
}


@pytest.fixture(scope="module")
def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Two connectors; one has a revoked, a superseded and a current secret, an event and a conflict.

    Made once: what is tried here is refused, and rolled back where it is not.
    """
    with django_db_blocker.unblock():
        _make()
        yield
        connections.close_all()
        empty_tables(owner_named("attachments"))
        connections.close_all()


def _make() -> None:
    connector(tenant="org:other", name="other")
    own = connector(tenant="org:own")
    revoke(connector_id=own.connector_id, secret_id=own.issued.secret_id, actor=ACTOR)
    rotate(connector_id=own.connector_id, actor=ACTOR)
    rotated = rotate(connector_id=own.connector_id, actor=ACTOR)
    assert deliver(own.connector_id, rotated.issued.secret)
    assert deliver(own.connector_id, rotated.issued.secret, body=b"other") is None


def a_connector(**changed: str) -> str:
    values = {"id": NEW, "name": "'new'", "kind": "'organization'", "tenant": "'o'", "provider": "'bank'", "more": ""}
    values |= changed
    return CONNECTOR.format(**{"said_kind": values["kind"], **values})


def a_secret(**changed: str) -> str:
    values = {"id": NEW, "sealed": SEALED, "key": SHA, "sha": SHA, "state": "current", "columns": "", "values": ""}
    return SECRET.format(**values | changed)


def an_act(**changed: str) -> str:
    return ACT.format(**{"kind": "'connector_created'", "actor": "'alice'", "secret": "NULL"} | changed)


def an_event(**changed: str) -> str:
    values = {"id": NEW, "webhook": "'new'", "bytes": "1", "sha": X_SHA, "secret": CURRENT.format("bank")}
    return EVENT.format(**values | changed)


def a_conflict(**changed: str) -> str:
    values = {"id": NEW, "bytes": "1", "sha": X_SHA, "secret": CURRENT.format("bank")}
    return CONFLICT.format(**values | changed)


def of(state: str, change: str) -> str:
    return f"UPDATE financial_connector_secrets SET {change} WHERE state = '{state}'"


REFUSED = [
    ("financial_connectors_name_key", a_connector(name="'bank'")),
    ("connector_name", a_connector(name="''")),
    ("connector_name", a_connector(name="repeat('x', 201)")),
    ("connector_name", a_connector(name="E'a\\nb'")),
    ("connector_tenant_kind_closed", a_connector(kind="'company'")),
    ("connector_tenant", a_connector(tenant="''")),
    ("connector_tenant", a_connector(tenant="'a b'")),
    ("connector_provider", a_connector(provider="'Bank'")),
    ("connector_says_what_it_is", a_connector(said_kind="'personal'")),
    ("connector_says_what_it_is", a_connector().replace("sha256(convert", "sha224(convert")),
    ("connector_secret_sealed", a_secret(sealed="'x'")),
    ("connector_secret_sealed", a_secret(key="key")),
    ("connector_secret_hash", a_secret(sha="x" * 64)),
    ("connector_secret_born_current", a_secret(state="revoked", columns=", revoked_at", values=", now()")),
    ("connector_secret_one_current", a_secret()),
    ("connector_secret_shape", of("current", "state = 'revoked'")),
    ("connector_secret_shape", of("current", "state = 'superseded'")),
    ("connector_secret_deadline", f"{SUPERSEDE} - interval '1 s' WHERE state = 'current'"),
    ("connector_secret_told", f"{SUPERSEDE} WHERE state = 'current'"),
    ("connector_secret_told", of("superseded", "state = 'revoked', revoked_at = now()")),
    ("connector_secret_steps", of("current", "state = 'lost'")),
    ("connector_secret_steps", of("revoked", "state = 'current', revoked_at = NULL")),
    ("connector_secret_frozen", of("superseded", "state = 'current', superseded_at = NULL, expires_at = NULL")),
    ("connector_secret_frozen", of("superseded", "expires_at = expires_at + interval '1 day'")),
    (
        "connector_secret_frozen",
        of("superseded", "state = 'revoked', revoked_at = now(), expires_at = expires_at + interval '1 day'"),
    ),
    ("connector_act_kind_closed", an_act(kind="'burnt'", secret=CURRENT.format("bank"))),
    ("connector_act_names_who", an_act(actor="''")),
    ("connector_act_about", an_act(secret=CURRENT.format("bank"))),
    ("connector_act_about", an_act(kind="'secret_current'")),
    ("connector_act_once", an_act(kind="'secret_current'", secret=CURRENT.format("bank"))),
    ("connector_event_webhook_id", an_event(webhook="''")),
    ("connector_event_webhook_id", an_event(webhook="'a.b'")),
    ("connector_event_webhook_id", an_event(webhook="'a b'")),
    ("connector_event_webhook_id", an_event(webhook="repeat('x', 256)")),
    ("connector_event_once", an_event(webhook="'msg'")),
    ("connector_event_digest", an_event(bytes="2")),
    ("connector_event_digest", an_event(sha=f"'{SHA}'")),
    ("connector_event_own_secret", an_event(secret=CURRENT.format("other"))),
    ("connector_event_own_secret", an_event(secret=f"'{NEW}'")),
    ("connector_conflict_digest", a_conflict(sha="'x'")),
    ("connector_conflict_digest", a_conflict(bytes="-1")),
    ("connector_conflict_differs", a_conflict(sha="e.body_sha256")),
    ("connector_conflict_own_secret", a_conflict(secret=CURRENT.format("other"))),
    (
        "connector_conflict_once",
        a_conflict(sha="(SELECT body_sha256 FROM financial_connector_conflicts LIMIT 1)"),
    ),
]


@pytest.mark.parametrize("alias", ["attachments", "attachments.schema"])
@pytest.mark.parametrize(
    ("constraint", "statement"), REFUSED, ids=[f"{number} {name}" for number, (name, _) in enumerate(REFUSED)]
)
def test_the_database_refuses(alias: str, constraint: str, statement: str) -> None:
    assert refusal_of(alias, statement) == constraint


def test_what_fits_is_accepted() -> None:
    """So that the statements above are refused for what they say."""
    for statement in (a_connector(), an_event(), a_conflict()):
        with pytest.raises(AssertionError, match="accepted"):
            refusal_of("attachments", statement)


def test_a_secret_that_no_guard_looks_at_is_still_one_of_the_closed_states() -> None:
    lifted = "ALTER TABLE financial_connector_secrets DISABLE TRIGGER USER"
    assert refusal_of("attachments.schema", lifted, of("current", "state = 'lost'")) in {
        "connector_secret_state_closed", "connector_secret_shape",
    }  # fmt: skip
    used = a_secret(sha="{sha}").replace("'{sha}'", "(SELECT secret_sha256 FROM financial_connector_secrets LIMIT 1)")
    revoked = of("current", "state = 'revoked', revoked_at = now()")
    assert refusal_of("attachments.schema", lifted, revoked, used) == "financial_connector_secrets_secret_sha256_key"


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", [*TABLES, "financial_connector_secrets"])
def test_nothing_is_deleted_or_emptied_by_anyone(table: str) -> None:
    kept = f"{TABLES[table]}_kept" if table in TABLES else "connector_secret_delete"
    assert refusal_of("attachments", f"DELETE FROM {table}") == NO_PRIVILEGE
    assert refusal_of("attachments", f"TRUNCATE {table} CASCADE") == NO_PRIVILEGE
    assert refusal_of("attachments.schema", f"DELETE FROM {table}") == kept
    assert refusal_of("attachments.schema", f"TRUNCATE {table} CASCADE").endswith("_truncate")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("financial_connectors", "tenant_id"),
        ("financial_connectors", "digest"),
        ("financial_connector_acts", "actor"),
        ("financial_connector_events", "body"),
        ("financial_connector_events", "connector_id"),
        ("financial_connector_conflicts", "body_sha256"),
    ],
)
def test_what_was_written_never_changes(table: str, column: str) -> None:
    change = f"UPDATE {table} SET {column} = {column}"
    assert refusal_of("attachments", change) == NO_PRIVILEGE
    assert refusal_of("attachments.schema", change) == f"{TABLES[table]}_kept"


@pytest.mark.parametrize("column", ["sealed", "sealed_with", "secret_sha256", "connector_id", "issued_at"])
def test_the_owner_may_not_write_what_a_secret_is(column: str) -> None:
    assert refusal_of("attachments", f"UPDATE financial_connector_secrets SET {column} = {column}") == NO_PRIVILEGE


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", [*TABLES, "financial_connector_secrets"])
def test_no_other_role_may_write_or_the_journal_read(table: str) -> None:
    for alias in ("attachments.read", "attachments.journal"):
        assert refusal_of(alias, f"DELETE FROM {table}") == NO_PRIVILEGE
        assert refusal_of(alias, f"INSERT INTO {table} SELECT * FROM {table}") == NO_PRIVILEGE
    assert refusal_of("attachments.journal", f"SELECT * FROM {table}") == NO_PRIVILEGE
    assert ConnectorEvent.objects.using("attachments.read").count() == 1

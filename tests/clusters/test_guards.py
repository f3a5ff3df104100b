"""What must never happen to clusters, tokens, keys and audit is refused by the database, to every login role."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from metering.clusters.managed_keys import Key, learn_keys
from metering.clusters.rotate import Rotated
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.clusters.conftest import ACTOR

pytestmark = [pytest.mark.usefixtures("made")]
SHA = "0" * 64
NEW = "00000000-0000-7000-8000-00000000000f"
CLUSTER = "INSERT INTO clusters (cluster_id, name, token_mode{columns}) VALUES ({id}, {name}, {mode}{values})"
TOKEN = (
    "INSERT INTO otlp_tokens (token_id, cluster_id, token_sha256, mode, state{columns})"
    " VALUES ('{id}', {cluster}, '{sha}', '{mode}', '{state}'{values})"
)
KEY = "INSERT INTO managed_keys (manager_key_id, organization_id, label) VALUES ({id}, {organization}, {label})"
ADMINISTRATOR = (
    "INSERT INTO administrator_tokens (token_id, account_id, account_name, token_sha256, issued_at, expires_at)"
    " VALUES ('{id}', 1, 'alice', '{sha}', now(), now() + interval '{life}')"
)
AUDIT = "INSERT INTO admin_audit_entries (action, actor, through, detail{columns}) VALUES ({values})"
SUPERSEDE = "UPDATE otlp_tokens SET state = 'superseded', superseded_at = now(), expires_at = now() + interval '{}'"


@pytest.fixture
def made(rotated: Callable[[], Rotated]) -> Rotated:
    """Cluster 7 with a superseded and a primary token, key 1, and an administrator's token."""
    rotated()
    learn_keys(keys=[Key("1", "organization-1", "a label")], actor=ACTOR)
    with connections["metering"].cursor() as cursor:
        cursor.execute(
            "WITH a AS (INSERT INTO admin_audit_entries (action, actor, through, detail, token_id) VALUES"
            " ('administrator_token_minted', 'alice', 'command', '', %s))"
            + ADMINISTRATOR.replace("{id}", NEW[:-1] + "a").replace("{sha}", "a" * 64).replace("{life}", "1 day"),
            [NEW[:-1] + "a"],
        )
    return rotated()


def cluster(  # the columns of a cluster
    *, id: str = "8", name: str = "'eight'", mode: str = "'gateway'", columns: str = "", values: str = ""
) -> str:
    return CLUSTER.format(id=id, name=name, mode=mode, columns=columns, values=values)


def token(**changed: str) -> str:
    values = {"id": NEW, "cluster": "7", "sha": SHA, "mode": "gateway", "state": "minted", "columns": "", "values": ""}
    return TOKEN.format(**{**values, **changed})


def key(*, id: str = "'2'", organization: str = "'organization-1'", label: str = "''") -> str:
    return KEY.format(id=id, organization=organization, label=label)


def rate(values: str) -> str:
    return cluster(columns=", rate_per_second, rate_burst", values=f", {values}")


def of_primary(change: str) -> str:
    return f"UPDATE otlp_tokens SET {change} WHERE state = 'primary'"


def of_superseded(change: str) -> str:
    return f"UPDATE otlp_tokens SET {change} WHERE state = 'superseded'"


@pytest.mark.parametrize("alias", ["metering", "metering.schema"])
@pytest.mark.parametrize(
    ("constraint", "statement"),
    [
        ("clusters_pkey", cluster(id="7")),
        ("clusters_name_key", cluster(name="'seven'")),
        ("cluster_id_positive", cluster(id="0")),
        ("cluster_name", cluster(name="''")),
        ("cluster_name", cluster(name="repeat('x', 201)")),
        ("cluster_name", cluster(name="E'a\\nb'")),
        ("cluster_mode_closed", cluster(mode="'both'")),
        ("cluster_sink_closed", cluster(columns=", sink", values=", 'nowhere'")),
        ("cluster_rate_whole", rate("10, NULL")),
        ("cluster_rate_whole", rate("NULL, 10")),
        ("cluster_rate_whole", rate("0, 10")),
        ("cluster_rate_whole", rate("10, 0")),
        ("cluster_rate_whole", rate("1000001, 10")),
        ("otlp_token_hash", token(sha="0" * 63)),
        ("otlp_token_hash", token(sha="G" * 64)),
        ("otlp_token_mode_closed", token(mode="both")),
        ("otlp_token_born_minted", token(state="primary", columns=", handed_over_at", values=", now()")),
        ("otlp_token_born_minted", token(state="revoked", columns=", revoked_at", values=", now()")),
        ("otlp_token_audited", token()),
        ("otlp_token_shape", token(columns=", revoked_at", values=", now()")),
        ("otlp_token_grace_floor", SUPERSEDE.format("71 h") + " WHERE state = 'primary'"),
        ("otlp_token_audited", SUPERSEDE.format("72 h") + " WHERE state = 'primary'"),
        ("otlp_token_audited", of_primary("state = 'revoked', revoked_at = now()")),
        ("otlp_token_shape", of_primary("state = 'revoked'")),
        ("otlp_token_frozen", of_superseded("state = 'primary', superseded_at = NULL, expires_at = NULL")),
        ("otlp_token_frozen", of_primary("state = 'minted', handed_over_at = NULL")),
        ("otlp_token_steps", of_primary("state = 'lost'")),
        ("otlp_token_frozen", of_primary("handed_over_at = now()")),
        ("otlp_token_steps", of_primary("state = 'minted'")),
        ("otlp_token_steps", of_superseded("state = 'primary'")),
        ("otlp_token_steps", of_superseded("state = 'unsettled'")),
        ("otlp_token_steps", of_superseded("revoked_at = now()")),
        ("otlp_token_frozen", of_superseded("expires_at = expires_at + interval '1 day'")),
        (
            "otlp_token_frozen",
            of_superseded("state = 'revoked', revoked_at = now(), expires_at = expires_at + interval '1 day'"),
        ),
        ("managed_keys_pkey", key(id="'1'")),
        ("managed_key_id_decimal", key(id="'01'")),
        ("managed_key_id_decimal", key(id="'0'")),
        ("managed_key_id_decimal", key(id="'-1'")),
        ("managed_key_id_decimal", key(id="'1e3'")),
        ("managed_key_id_decimal", key(id="'12345678901234567890'")),
        ("managed_key_organization", key(organization="''")),
        ("managed_key_organization", key(organization="'a b'")),
        ("managed_key_organization", key(organization="repeat('x', 201)")),
        ("managed_key_label", key(label="repeat('x', 201)")),
        ("administrator_token_audited", ADMINISTRATOR.format(id=NEW, sha=SHA, life="1 day")),
        ("administrator_token_life", ADMINISTRATOR.format(id=NEW, sha=SHA, life="0 day")),
        ("administrator_token_life", ADMINISTRATOR.format(id=NEW, sha=SHA, life="367 days")),
        ("administrator_token_hash", ADMINISTRATOR.format(id=NEW, sha="x" * 64, life="1 day")),
        ("administrator_token_audited", "UPDATE administrator_tokens SET revoked_at = now()"),
        ("audit_action_closed", AUDIT.format(columns="", values="'burnt', 'a', 'b', ''")),
        ("audit_names_who", AUDIT.format(columns="", values="'cluster_created', '', 'b', ''")),
        ("audit_names_who", AUDIT.format(columns="", values="'cluster_created', 'a', '', ''")),
        (
            "audit_token_step_once",
            AUDIT.format(columns=", token_id", values=f"'administrator_token_minted', 'a', 'b', '', '{NEW[:-1]}a'"),
        ),
    ],
)
def test_the_database_refuses(alias: str, constraint: str, statement: str) -> None:
    assert refusal_of(alias, statement) == constraint


def test_there_is_one_primary_token_and_one_rotation_of_a_cluster(made: Rotated) -> None:
    """The unique indexes; the guards of steps and audit are lifted, as only the schema role can."""
    with_audit = [
        "ALTER TABLE otlp_tokens DISABLE TRIGGER USER",
        token(id=NEW[:-1] + "b", sha="b" * 64),
        token(id=NEW[:-1] + "c", sha="c" * 64),
    ]
    assert refusal_of("metering.schema", *with_audit) == "otlp_token_one_rotation"
    primary = [
        "ALTER TABLE otlp_tokens DISABLE TRIGGER USER",
        token(state="primary", columns=", handed_over_at", values=", now()"),
    ]
    assert refusal_of("metering.schema", *primary) == "otlp_token_one_primary"
    unknown = ["ALTER TABLE otlp_tokens DISABLE TRIGGER otlp_token_steps", of_primary("state = 'lost'")]
    with connections["metering.schema"].cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname LIKE %s", ["%otlp_token_steps%"])
        unknown[0] = f"ALTER TABLE otlp_tokens DISABLE TRIGGER {cursor.fetchone()[0]}"
    assert refusal_of("metering.schema", *unknown) in {"otlp_token_state_closed", "otlp_token_shape"}


GUARDS = {
    "clusters": "cluster",
    "otlp_tokens": "otlp_token",
    "managed_keys": "managed_key",
    "administrator_tokens": "administrator_token",
}


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", [*GUARDS, "admin_audit_entries"])
def test_nothing_is_deleted_or_emptied_by_anyone(table: str) -> None:
    name = GUARDS.get(table)
    assert refusal_of("metering", f"DELETE FROM {table}") == NO_PRIVILEGE
    assert refusal_of("metering", f"TRUNCATE {table} CASCADE") == NO_PRIVILEGE
    assert refusal_of("metering.schema", f"DELETE FROM {table}") == (f"{name}_delete" if name else "audit_kept")
    assert refusal_of("metering.schema", f"TRUNCATE {table} CASCADE").endswith("_truncate")


@pytest.mark.spec("T2")
def test_an_audit_entry_never_changes() -> None:
    change = "UPDATE admin_audit_entries SET actor = 'somebody else'"
    assert refusal_of("metering", change) == NO_PRIVILEGE
    assert refusal_of("metering.schema", change) == "audit_kept"


@pytest.mark.parametrize(
    ("guard", "table", "column", "value"),
    [
        ("cluster_frozen", "clusters", "cluster_id", "9"),
        ("cluster_frozen", "clusters", "created_at", "now() - interval '1 day'"),
        ("managed_key_frozen", "managed_keys", "manager_key_id", "'9'"),
        ("managed_key_frozen", "managed_keys", "organization_id", "'organization-2'"),
        ("administrator_token_frozen", "administrator_tokens", "account_id", "2"),
        ("administrator_token_frozen", "administrator_tokens", "token_sha256", f"'{SHA}'"),
        ("administrator_token_frozen", "administrator_tokens", "expires_at", "expires_at + interval '1 day'"),
    ],
)
def test_what_identifies_a_row_never_changes(guard: str, table: str, column: str, value: str) -> None:
    change = f"UPDATE {table} SET {column} = {value}"
    assert refusal_of("metering", change) == NO_PRIVILEGE
    assert refusal_of("metering.schema", change) == guard


@pytest.mark.parametrize("column", ["token_id", "cluster_id", "token_sha256", "mode", "issued_at"])
def test_the_owner_may_not_write_what_identifies_a_token(column: str) -> None:
    assert refusal_of("metering", f"UPDATE otlp_tokens SET {column} = {column}") == NO_PRIVILEGE


@pytest.mark.trap("D30")
@pytest.mark.parametrize("alias", ["metering.read", "metering.dispatch"])
@pytest.mark.parametrize("table", [*GUARDS, "admin_audit_entries"])
def test_no_other_role_may_write(alias: str, table: str) -> None:
    assert refusal_of(alias, f"DELETE FROM {table}") == NO_PRIVILEGE
    assert refusal_of(alias, f"INSERT INTO {table} SELECT * FROM {table}") == NO_PRIVILEGE
    if alias == "metering.dispatch":
        assert refusal_of(alias, f"SELECT * FROM {table}") == NO_PRIVILEGE


def test_a_revoked_administrators_token_stays_revoked(made: Rotated) -> None:
    from metering.clusters.administrators import end
    from metering.clusters.models import AdministratorToken

    token_id: Any = AdministratorToken.objects.using("metering.read").get().token_id
    assert end(token_id=token_id, actor=ACTOR)
    assert not end(token_id=token_id, actor=ACTOR)
    assert refusal_of("metering", "UPDATE administrator_tokens SET revoked_at = NULL") == "administrator_token_frozen"

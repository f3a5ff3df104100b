"""Every CHECK, UNIQUE and guard of the outbox refuses, for the roles that could try and for the owner of the tables."""

import uuid
from string import Template

import psycopg
import pytest
from django.apps import apps
from django.db import connections, transaction

from config.owners import Role, owner_named
from outbox.append import append_many
from tests.outbox.make import admission
from tests.owners.outbox_attempts import Attempt, every_attempt

NO_PRIVILEGE = "42501"
ATTEMPTS = every_attempt()
GUARDS = sorted({attempt.guard for attempt in ATTEMPTS})


@pytest.fixture
def ids(database: None) -> dict[str, str]:
    """One committed admission, and fresh ids."""
    with transaction.atomic(using="default"):
        run, wallet = append_many(admission(), using="default")
    return {
        "event": str(run.event_id),
        "wallet": str(wallet.event_id),
        **{name: str(uuid.uuid4()) for name in ("new", "attempt", "again")},
    }


def filled(statement: str, ids: dict[str, str]) -> str:
    """The statement with its ids; a `$q$` quote stays."""
    return Template(statement.replace("$q$", "$$q$$")).safe_substitute(ids)


def answer(connection: psycopg.Connection, attempt: Attempt, ids: dict[str, str]) -> tuple[str, str | None, str]:
    """(where it was refused, SQLSTATE or constraint name, message); nothing is kept."""
    stage = "setup"
    try:
        with connection.transaction(force_rollback=True):
            if attempt.setup:
                connection.execute(filled(attempt.setup, ids), prepare=False)
            stage = "attempt"
            connection.execute(filled(attempt.broken, ids), prepare=False)
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        name = NO_PRIVILEGE if error.sqlstate == NO_PRIVILEGE else error.diag.constraint_name
        return stage, name, f"{error.sqlstate} {error.diag.message_primary}"
    return "nowhere", None, "it went through"


@pytest.mark.spec("O3", "O4", "O5", "O6", "O18", "O19")
@pytest.mark.trap("D30")
@pytest.mark.parametrize("guard", GUARDS)
def test_refused_by(guard: str, ids: dict[str, str]) -> None:
    core = owner_named("core")
    wrong = []
    for attempt in [attempt for attempt in ATTEMPTS if attempt.guard == guard]:
        for role in (Role.SCHEMA, Role.OWNER, Role.DISPATCH, Role.READ):
            wrapper = connections[core.alias_of(role)]
            wrapper.ensure_connection()
            stage, name, message = answer(wrapper.connection, attempt, ids)
            expected = {*attempt.names, *(() if role is Role.SCHEMA else (NO_PRIVILEGE,))}
            if name not in expected or (role is Role.SCHEMA and stage != "attempt"):
                wrong.append(f"as {role} {stage}: {name} {message}\n    {attempt.broken.strip()[:300]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.spec("O2")
def test_every_constraint_and_guard_of_the_outbox_has_an_attempt_to_break_it() -> None:
    declared = set()
    for model in apps.get_app_config("outbox").get_models():
        declared |= {constraint.name for constraint in model._meta.constraints}
        declared |= {trigger.name for trigger in getattr(model._meta, "triggers", [])}
        declared |= {
            f"{model._meta.db_table}_{field.column}_key"
            for field in model._meta.concrete_fields
            if field.unique and not field.primary_key
        }
    assert declared <= set(GUARDS), f"no attempt: {sorted(declared - set(GUARDS))}"
    assert set(GUARDS) - declared == {"outbox_delivery_attempt_finishes_pkey"}

"""Every table has exactly one owner, and every migration stays in its owner's database."""

import inspect
from collections.abc import Iterator

import pytest
from django.apps import apps
from django.conf import settings
from django.db import connections, models
from django.db.migrations import RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.migration import Migration

from config.owners import OWNERS, owner_roles
from config.router import OwnerRouter

NO_TABLES = {"axes"}
"""Apps whose models get no table anywhere: failed logins are counted in the cache."""
OURS = {label for owner in OWNERS for label in owner.app_labels}
SHARED = {"outbox": {owner.name for owner in OWNERS if owner.produces}, "markers": {"attachments"}}
"""Apps whose tables stand in several owners' databases, and in whose."""


def owners_of(label: str) -> list[str]:
    return [owner.name for owner in OWNERS if label in owner.app_labels]


def tables() -> Iterator[type[models.Model]]:
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and not model._meta.proxy and model._meta.app_label not in NO_TABLES:
            yield model


@pytest.mark.spec("O1")
def test_every_table_belongs_to_exactly_one_owner_but_outbox_and_markers_to_those_who_need_them() -> None:
    for model in tables():
        label = model._meta.app_label
        assert owners_of(label), f"{model._meta.label} has no owner; name its app in config/owners.py"
        assert len(owners_of(label)) == 1 or set(owners_of(label)) == SHARED[label], model._meta.label
    assert {label: set(owners_of(label)) for label in SHARED} == SHARED


@pytest.mark.spec("O1")
def test_no_table_name_is_used_twice_in_one_database() -> None:
    for owner in OWNERS:
        names = [model._meta.db_table for model in tables() if owner.name in owners_of(model._meta.app_label)]
        assert len(names) == len(set(names)), owner.name


@pytest.mark.spec("O1")
def test_no_foreign_key_leaves_its_database() -> None:
    for model in tables():
        for field in model._meta.get_fields():
            if isinstance(field, models.ForeignKey):
                target = field.remote_field.model._meta.app_label
                assert owners_of(model._meta.app_label) == owners_of(target), f"{model._meta.label}.{field.name}"


@pytest.mark.trap("D23")
def test_an_app_is_migrated_under_the_aliases_of_its_owners_only() -> None:
    router = OwnerRouter()
    for label in OURS:
        for owner, role in owner_roles():
            allowed = router.allow_migrate(owner.alias_of(role), label)
            assert allowed is (owner.name in owners_of(label)), (label, owner.alias_of(role))


@pytest.mark.trap("D23")
def test_every_step_in_python_of_a_migration_works_on_the_alias_it_is_given() -> None:
    for migration in our_migrations():
        for operation in migration.operations:
            if isinstance(operation, RunPython):
                for step in filter(None, (operation.code, operation.reverse_code)):
                    if step is not RunPython.noop:
                        source = inspect.getsource(step)
                        assert "schema_editor" in source, f"{migration}: a step ignores the connection it is given"
                        assert "connections[" not in source, f"{migration}: a step chooses an alias itself"


@pytest.mark.trap("D23")
def test_no_migration_depends_on_an_app_of_another_database() -> None:
    for migration in our_migrations():
        for label, _ in migration.dependencies:
            if label != "__setting__":
                assert set(owners_of(migration.app_label)) <= set(owners_of(label)), str(migration)


def our_migrations() -> Iterator[Migration]:
    for (label, _), migration in MigrationLoader(None).disk_migrations.items():
        if label in OURS:
            yield migration


def test_every_alias_of_the_owner_table_is_configured_and_none_beside_it() -> None:
    expected = {owner.alias_of(role) for owner, role in owner_roles()}
    assert set(settings.DATABASES) == expected
    assert set(connections) == expected

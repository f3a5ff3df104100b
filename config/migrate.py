"""Migrate one owner's database: the apps that live there, and no others."""

from django.core.management.sql import emit_post_migrate_signal, emit_pre_migrate_signal
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from config.owners import Owner


def labels_of(owner: Owner) -> frozenset[str]:
    """The labels of the apps whose tables are in the owner's database."""
    return owner.app_labels


def migrate(owner: Owner) -> None:
    """Apply, under the schema role, every unapplied migration of the owner's apps. Each one is a transaction.

    Unlike Django's command this plans the owner's apps only: the history in a database then speaks of nothing else, and
    no time goes into states of models that live elsewhere.
    """
    alias, labels = owner.schema_alias, labels_of(owner)
    if not labels:
        return
    connection = connections[alias]
    connection.prepare_database()
    executor = MigrationExecutor(connection)
    executor.loader.check_consistent_history(connection)
    targets = [key for key in executor.loader.graph.leaf_nodes() if key[0] in labels]
    plan = executor.migration_plan(targets)
    if not plan:
        return
    emit_pre_migrate_signal(0, False, alias, plan=plan)
    state = executor.migrate(targets, plan=plan)
    state.clear_delayed_apps_cache()
    emit_post_migrate_signal(0, False, alias, apps=state.apps, plan=plan)

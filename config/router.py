"""Places every app in its owner's database, and refuses relations that would cross a database."""

from typing import Any

from django.db.models import Model

from config.owners import OWNERS, Owner, Role, owner_of_alias, owner_of_app

SESSION_APPS = frozenset({"auth", "sessions", "admin", "contenttypes"})
"""Login runs through the session role, which can write sessions and the time of the last login only."""


class OwnerRouter:
    """Reads and writes go to the owner's alias. `outbox` and `markers` have no default: name the alias with `using`.

    What is related to a row goes where the row came from, so a page that reads through `.read` stays there.
    """

    def db_for_read(self, model: type[Model], **hints: Any) -> str | None:
        return _source(hints) or _alias(model._meta.app_label)

    def db_for_write(self, model: type[Model], **hints: Any) -> str | None:
        return _source(hints) or _alias(model._meta.app_label)

    def allow_relation(self, obj1: Model, obj2: Model, **hints: Any) -> bool:
        label1, label2 = obj1._meta.app_label, obj2._meta.app_label
        return label1 == label2 or owner_of_app(label1) == owner_of_app(label2)

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return app_label in owner_of_alias(db).app_labels


def _source(hints: dict[str, Any]) -> str | None:
    instance = hints.get("instance")
    return instance._state.db if isinstance(instance, Model) else None


def _alias(app_label: str) -> str | None:
    if app_label in SESSION_APPS:
        return _core().alias_of(Role.SESSION)
    owner = owner_of_app(app_label)
    return owner.alias if owner else None


def _core() -> Owner:
    return next(owner for owner in OWNERS if owner.has_sessions)

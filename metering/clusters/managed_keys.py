"""Learn which organisation pays for a managed key, and tell it (T13).

The first answer stands for ever: the database refuses another one. So consumption may read it in another database than
its own, outside any common transaction, and only has to come back for keys that nobody knows yet.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from django.db import DatabaseError, transaction

from config.owners import owner_named
from metering.clusters.audit import ALIAS, Act, Actor, record
from metering.clusters.errors import InvalidKey, KeyConflict, translate
from metering.clusters.models import AuditAction, ManagedKey
from outbox.raw import raw_cursor

READ_ALIAS = owner_named("metering").read_alias
BATCH = 1_000
SAID = 5
"""Conflicts that a message names."""
FIND = "SELECT manager_key_id, organization_id FROM managed_keys WHERE manager_key_id = ANY (%s)"
LEARN = """
INSERT INTO managed_keys (manager_key_id, organization_id, label)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])
ON CONFLICT (manager_key_id) DO NOTHING
"""
RELABEL = """
UPDATE managed_keys k SET label = n.label FROM unnest(%s::text[], %s::text[]) AS n (manager_key_id, label)
 WHERE k.manager_key_id = n.manager_key_id AND k.label <> n.label
"""


@dataclass(frozen=True, slots=True)
class Key:
    """One managed key: its decimal id as events carry it, who pays, and words for people."""

    manager_key_id: str
    organization_id: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Learnt:
    """How many keys were given, and how many of them are new."""

    given: int
    new: int


def organizations_of(manager_key_ids: Collection[str]) -> Mapping[str, str]:
    """The organisation of each key that is known; the others are missing in the answer.

    One indexed read on `metering.read`. What it answers never changes; what it leaves out may become known later.
    """
    if not manager_key_ids:
        return {}
    with raw_cursor(READ_ALIAS) as cursor:
        return dict(cursor.execute(FIND, [sorted(set(manager_key_ids))]).fetchall())


def learn_keys(*, keys: Iterable[Key], actor: Actor) -> Learnt:
    """Add the keys that are new and take over labels, all or nothing. Raises `KeyConflict` or `InvalidKey`."""
    given = new = 0
    remaining = iter(keys)
    try:
        with transaction.atomic(using=ALIAS, durable=True):
            while batch := list(islice(remaining, BATCH)):
                given, new = given + len(batch), new + _learn(batch)
            if new:
                record(actor, [Act(AuditAction.KEYS_IMPORTED, detail=f"{new} new of {given}")])
    except DatabaseError as error:
        translate(error, unfit=InvalidKey)
    return Learnt(given, new)


def _learn(batch: list[Key]) -> int:
    wanted: dict[str, Key] = {}
    for key in batch:
        if wanted.setdefault(key.manager_key_id, key).organization_id != key.organization_id:
            raise KeyConflict(f"Key {key.manager_key_id} is given twice. {KeyConflict.__doc__}")
    keys = sorted(wanted.values(), key=lambda key: key.manager_key_id)
    ids, labels = [key.manager_key_id for key in keys], [key.label for key in keys]
    with raw_cursor(ALIAS) as cursor:
        new = cursor.execute(LEARN, [ids, [key.organization_id for key in keys], labels]).rowcount
        known = dict(cursor.execute(FIND, [ids]).fetchall())
        other = [key for key in keys if known[key.manager_key_id] != key.organization_id]
        if other:
            named = ", ".join(f"{key.manager_key_id} ({known[key.manager_key_id]})" for key in other[:SAID])
            raise KeyConflict(f"{len(other)} of these keys, such as {named}: {KeyConflict.__doc__}")
        cursor.execute(RELABEL, [ids, labels])
    return new


def known_key(manager_key_id: str) -> Key | None:
    """The key with this id, or None."""
    rows = ManagedKey.objects.using(READ_ALIAS).filter(manager_key_id=manager_key_id)
    found = rows.values_list("manager_key_id", "organization_id", "label").first()
    return Key(*found) if found else None

"""Keys of the LLM gateway and who pays for what is used with them."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from outbox.guards import never_delete, refuse_when


class ManagedKey(models.Model):
    """The authoritative organisation of a key (T13): the first one learnt, and never another.

    Consumption reads it outside its own transactions, in another database. It may, because an answer never changes.
    """

    manager_key_id = models.TextField(primary_key=True, help_text="Decimal digits, as events carry it.")
    organization_id = models.TextField()
    label = models.TextField(db_default="", help_text="For people; may change.")
    known_since = models.DateTimeField(db_default=Now())

    owner_may_update = ("label",)

    class Meta:
        db_table = "managed_keys"
        constraints = [
            models.CheckConstraint(
                name="managed_key_id_decimal", condition=Q(manager_key_id__regex=r"^[1-9][0-9]{0,18}$")
            ),
            models.CheckConstraint(
                name="managed_key_organization",
                condition=Q(
                    LessThanOrEqual(Length("organization_id"), 200), organization_id__regex=r"^[^[:cntrl:][:space:]]+$"
                ),
            ),
            models.CheckConstraint(name="managed_key_label", condition=Q(LessThanOrEqual(Length("label"), 200))),
        ]
        indexes = [models.Index(name="managed_key_of_organization", fields=["organization_id", "manager_key_id"])]
        triggers = [
            *never_delete(name="managed_key", message="A managed key is never deleted: what it used stays charged."),
            refuse_when(
                name="managed_key_frozen",
                operation=pgtrigger.Update,
                condition="(NEW.manager_key_id, NEW.organization_id, NEW.known_since) IS DISTINCT FROM"
                " (OLD.manager_key_id, OLD.organization_id, OLD.known_since)",
                message="The organisation of a managed key never changes; a key for another organisation is a new key.",
            ),
        ]

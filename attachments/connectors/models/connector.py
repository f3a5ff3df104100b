"""A connector: which provider delivers, and whose events these are. Nothing that is sent decides it."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Length, Now
from django.db.models.lookups import LessThanOrEqual

from attachments.tenants import TenantKind
from outbox.guards import append_only, refuse_when

SAYS_OTHERWISE = """
NEW.digest IS DISTINCT FROM encode(sha256(convert_to(NEW.candidate, 'UTF8')), 'hex')
 OR NEW.candidate::jsonb IS DISTINCT FROM jsonb_build_object(
    'connectorId', NEW.connector_id, 'tenantKind', NEW.tenant_kind, 'tenantId', NEW.tenant_id,
    'providerCode', NEW.provider_code, 'financialConnectorSchemaVersion', '1',
    'financialConnectorDigestAlgorithmVersion', 'jcs-sha256-v1')
"""


class Connector(models.Model):
    """`FinancialConnectorConfiguration@1`: the text its digest covers, and its parts as columns."""

    connector_id = models.UUIDField(primary_key=True)
    name = models.TextField(unique=True, help_text="What operators call it; no part of its configuration.")
    tenant_kind = models.TextField(choices=TenantKind)
    tenant_id = models.TextField()
    provider_code = models.TextField()
    digest = models.TextField()
    candidate = models.TextField(help_text="The canonical text that the digest covers, byte for byte.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "financial_connectors"
        verbose_name = "connector"
        constraints = [
            models.CheckConstraint(
                name="connector_name", condition=Q(LessThanOrEqual(Length("name"), 200), name__regex=r"^[^[:cntrl:]]+$")
            ),
            models.CheckConstraint(name="connector_tenant_kind_closed", condition=Q(tenant_kind__in=TenantKind.values)),
            models.CheckConstraint(name="connector_tenant", condition=Q(tenant_id__regex=r"^[\x21-\x7e]{1,200}$")),
            models.CheckConstraint(
                name="connector_provider", condition=Q(provider_code__regex=r"^[a-z][a-z0-9_]{0,39}$")
            ),
        ]
        triggers = [
            *append_only(name="connector", message="A connector never changes; create another one."),
            refuse_when(
                name="connector_says_what_it_is",
                operation=pgtrigger.Insert,
                condition=SAYS_OTHERWISE,
                message="The columns of a connector are what its text says, and its digest is that of the text.",
            ),
        ]

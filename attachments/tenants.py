"""Who pays for what the rooms of this owner do."""

from django.db import models


class TenantKind(models.TextChoices):
    """What kind of tenant pays."""

    ORGANIZATION = "organization", "Organisation"
    PERSONAL = "personal", "Person"

"""System checks of the outbox: limits that must hold before anything starts."""

from typing import Any

from django.conf import settings
from django.core.checks import Error, register

from outbox.contracts.delivery import RetryClass


@register()
def lease_is_renewed_in_time(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Renewal at a third of the lease or sooner, so that two renewals may fail before a lease is lost (O19)."""
    if settings.OUTBOX_RENEW_EVERY * 3 > settings.OUTBOX_LEASE:
        return [
            Error(
                f"OUTBOX_RENEW_EVERY={settings.OUTBOX_RENEW_EVERY} s is more than a third of OUTBOX_LEASE.",
                hint=f"Set OUTBOX_RENEW_EVERY to at most {settings.OUTBOX_LEASE / 3:.3f}.",
                id="outbox.E001",
            )
        ]
    return []


@register()
def retry_policy_is_complete(app_configs: Any, **kwargs: Any) -> list[Error]:
    """Every retry class has a policy with sane numbers, and waiting for a predecessor never quarantines (O30)."""
    found = []
    for retry_class in RetryClass:
        policy: dict[str, Any] | None = settings.OUTBOX_RETRY.get(retry_class.value)
        if policy is None or not {"base", "factor", "cap", "quarantine_after"} <= set(policy):
            found.append(
                Error(
                    f"OUTBOX_RETRY has no complete policy for {retry_class.value!r}.",
                    hint="Give it base, factor, cap and quarantine_after.",
                    id="outbox.E002",
                )
            )
        elif not (0 < policy["base"] <= policy["cap"] and policy["factor"] >= 1):
            found.append(
                Error(
                    f"OUTBOX_RETRY[{retry_class.value!r}] must have 0 < base <= cap and factor >= 1.", id="outbox.E003"
                )
            )
    waiting = settings.OUTBOX_RETRY.get(RetryClass.WAITING_PREDECESSOR.value, {})
    if waiting.get("quarantine_after") is not None:
        found.append(
            Error(
                "waiting_predecessor may not quarantine by attempts: an event that waits is not at fault.",
                hint="Set its quarantine_after to None.",
                id="outbox.E004",
            )
        )
    return found

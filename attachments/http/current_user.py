"""Who calls, as the rooms of this owner know it. It comes from authentication alone, never from what is asked for."""

from dataclasses import dataclass, field
from typing import Literal, cast

from django.http import HttpRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentUser:
    """An account in one of its tenants. `session_key_for_identity` tells sessions and tokens apart, and is no secret
    to be shown or stored."""

    user_id: int
    tenant_kind: Literal["organization", "personal"]
    tenant_id: str
    is_reviewer: bool
    session_key_for_identity: str = field(repr=False)

    @property
    def tenant_ref(self) -> str:
        """The tenant as `kind:id`."""
        return f"{self.tenant_kind}:{self.tenant_id}"


def current_user(request: HttpRequest) -> CurrentUser:
    """The caller, behind a door of `attachments.http.people`."""
    return cast(CurrentUser, request.auth)  # type: ignore[attr-defined]  # ninja sets what the door answered

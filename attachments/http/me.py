"""Who calls, as the API sees them; for a session also the token that its changes need."""

from typing import Any

from django.http import HttpRequest
from django.middleware.csrf import get_token
from ninja import Router, Schema
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from attachments.http.current_user import current_user
from attachments.http.people import DOORS
from attachments.http.problems import ProblemDetails

router = Router(auth=DOORS, tags=["people"], by_alias=True)


class Me(Schema):
    """The account, its tenant as `kind:id`, and for a session the value of X-CSRFToken."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    user_id: int
    tenant: str
    is_reviewer: bool
    csrf_token: str | None


@router.get("", response={200: Me, **dict.fromkeys((400, 401, 403, 503), ProblemDetails)}, operation_id="readMe")
def read_me(request: HttpRequest) -> Any:
    """Who calls."""
    user = current_user(request)
    shows_token = "Authorization" in request.headers
    return Me(
        user_id=user.user_id,
        tenant=user.tenant_ref,
        is_reviewer=user.is_reviewer,
        csrf_token=None if shows_token else get_token(request),
    )

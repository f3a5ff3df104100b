"""The API: its routers, and what answers when one of them refuses. Its document is at `/api/v1/openapi.json`."""

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from attachments.claims.api.attachments import router as attachments
from attachments.claims.api.claims import router as claims
from attachments.claims.api.refusals import answer_claims_refusals
from attachments.connectors.api import router as connectors
from attachments.http.connections import gives_up_connections
from attachments.http.me import router as me
from attachments.http.problems import MEDIA_TYPE
from attachments.http.refusals import answer_refusals


class _ProblemApi(NinjaAPI):
    """Says in its document that refusals are `application/problem+json`."""

    def get_openapi_schema(self, **kwargs: Any) -> OpenAPISchema:
        schema = super().get_openapi_schema(**kwargs)
        for methods in schema["paths"].values():
            for operation in methods.values():
                for response in operation["responses"].values():
                    content = response.get("content", {})
                    told = content.get("application/json", {}).get("schema", {})
                    if str(told.get("$ref", "")).endswith("/ProblemDetails"):
                        response["content"] = {MEDIA_TYPE: content["application/json"]}
        return schema


api = _ProblemApi(
    title="Backbone",
    version="1",
    description="Claims with their attachments, and the events of financial connectors.",
    urls_namespace="api",
    docs_url=None,
)
answer_refusals(api)
answer_claims_refusals(api)
api.add_decorator(gives_up_connections, mode="view")
api.add_router("/me", me)
api.add_router("/claims", claims)
api.add_router("/claims", attachments)
api.add_router("/connectors", connectors)

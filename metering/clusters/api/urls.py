"""The addresses, as the receiver's contract names them: no trailing slash, no redirect."""

from django.urls import path

from metering.clusters.api.views import list_view, revoke_view, rotate_view

urlpatterns = [
    path("<str:cluster_id>/otlp-tokens/rotate", rotate_view, name="otlp_tokens_rotate"),
    path("<str:cluster_id>/otlp-tokens", list_view, name="otlp_tokens"),
    path("<str:cluster_id>/otlp-tokens/<str:token_id>", revoke_view, name="otlp_tokens_revoke"),
]

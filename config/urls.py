"""Every address of the project."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from config import health
from config.metrics import metrics
from config.readonly_admin import SECTIONS

urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index", http_method_names=["get", "head"])),
    *(path(f"admin/{name}/", section.urls) for name, section in SECTIONS.items()),
    path("admin/", admin.site.urls),
    path("api/v1/admin/clusters/", include("metering.clusters.api.urls")),
    path("api/v1/", include("attachments.http.urls")),
    path("health/live", health.live, name="live"),
    path("health/ready", health.ready, name="ready"),
    path("health/version", health.version, name="version"),
    path("metrics", metrics, name="metrics"),
]

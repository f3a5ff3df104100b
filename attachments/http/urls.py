"""Where the API is, and a problem for every other address below it."""

from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt

from attachments.http.api import api
from attachments.http.problems import Kind, problem


@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    """404, for any method."""
    return problem(Kind.NOT_FOUND, "There is no such address. The document of the API is at /api/v1/openapi.json.")


urlpatterns = [path("", api.urls), re_path(r"", nothing_here)]

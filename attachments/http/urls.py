"""Where the API is, and a problem for every other address and method below it."""

import functools
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from attachments.http.api import api
from attachments.http.problems import Kind, problem

READ = {"openapi-json", "api-root"}
"""Addresses of the library that would answer every method."""


@csrf_exempt
def nothing_here(request: HttpRequest) -> HttpResponse:
    """404, for any method."""
    return problem(Kind.NOT_FOUND, "There is no such address. The document of the API is at /api/v1/openapi.json.")


def _with_problems(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @functools.wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            answered = view(request, *args, **kwargs)
        except Http404:
            return nothing_here(request)
        if isinstance(answered, HttpResponseNotAllowed):
            allowed = ", ".join(sorted(answered.headers["Allow"].split(", ")))
            return problem(Kind.METHOD_NOT_ALLOWED, f"Here is answered: {allowed}.", headers={"Allow": allowed})
        return answered

    return answer


_patterns, _app_name, _namespace = api.urls
for _pattern in _patterns:
    if isinstance(_pattern, URLPattern):
        _only_read = _pattern.name in READ
        _pattern.callback = _with_problems(require_safe(_pattern.callback) if _only_read else _pattern.callback)

urlpatterns = [path("", (_patterns, _app_name, _namespace)), re_path(r"", nothing_here)]

"""The operators' home: the first page, search, and the only two views that take a POST, login and logout."""

from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.debug import sensitive_post_parameters
from redis.exceptions import RedisError

from config.home.board import board
from config.home.search import search
from config.readonly_admin import SECTIONS, OperatorSite, OwnerSection

LOGIN_METHODS = ("GET", "HEAD", "POST")
REFRESH_SECONDS = 10


class HomeSite(OperatorSite):
    """`admin.site`: home, search, login, logout."""

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name=name)
        for section in SECTIONS.values():
            section.summary = _section_board

    @property
    def urls(self) -> tuple[list[URLPattern | URLResolver], str, str]:
        pages = [
            path("", self.admin_view(self.index), name="index"),
            path("search/", self.admin_view(self.search), name="search"),
            path("login/", self.login, name="login"),
            path("logout/", self.logout, name="logout"),
        ]
        return [*pages, *self.page_urls()], "admin", self.name

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # rendered at once, inside the door
        """All owners at a glance."""
        refreshes = "refresh" in request.GET
        context = {**self.each_context(request), "at_home": True, "board": board()}
        context |= {"title": "All owners", "refresh_seconds": REFRESH_SECONDS if refreshes else None}
        return render(request, "operator/home.html", context)

    def search(self, request: HttpRequest) -> HttpResponse:
        """What one exact id leads to, at every owner; a single hit is opened at once."""
        text = request.GET.get("q", "").strip()
        answer = search(text)
        if answer.only_hit:
            return HttpResponseRedirect(answer.only_hit)
        context = {**self.each_context(request), "title": "Find by exact id", "find": text, "answer": answer}
        return render(request, "operator/search.html", context)

    @method_decorator([never_cache, csrf_protect, sensitive_post_parameters()])
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The login form. Without the throttle's memory or the session database nobody gets in, and is told why."""
        if request.method not in LOGIN_METHODS:
            return HttpResponseNotAllowed(LOGIN_METHODS)
        try:
            if self.has_permission(request):
                return HttpResponseRedirect(reverse("admin:index"))
            context = {**self.each_context(request), "title": "Log in", "app_path": request.get_full_path()}
            context |= {"username": request.user.get_username()}
            if "next" not in request.GET and "next" not in request.POST:
                context["next"] = reverse("admin:index")
            view = LoginView.as_view(
                next_page="admin:index",
                authentication_form=AdminAuthenticationForm,
                template_name="admin/login.html",
                extra_context=context,
            )
            return _rendered(view(request))
        except RedisError:
            return _no_login(request, "The store that counts failed logins cannot be reached.")
        except (OperationalError, InterfaceError):
            return _no_login(request, "The database that holds logins and sessions cannot be reached.")

    @method_decorator([never_cache, csrf_protect])
    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # it redirects
        """End the session. POST only."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        try:
            return _rendered(LogoutView.as_view(next_page="admin:login")(request))
        except (OperationalError, InterfaceError):
            return _no_login(request, "The database that holds sessions cannot be reached; the session still stands.")


def _section_board(request: HttpRequest, section: OwnerSection) -> dict[str, Any]:
    return {"board": board(section.owner)} if section.owner.produces else {}


def _rendered(answer: HttpResponseBase) -> HttpResponse:
    """The answer, drawn here, where a database that is away is still told apart."""
    if isinstance(answer, TemplateResponse):
        answer.render()
    assert isinstance(answer, HttpResponse)  # noqa: S101  (for the types: login and logout stream nothing)
    return answer


def _no_login(request: HttpRequest, reason: str) -> HttpResponse:
    return render(request, "operator/no_login.html", {"title": "Login is unavailable", "reason": reason}, status=503)

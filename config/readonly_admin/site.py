"""The one door of every admin page, and one section per owner.

Every page answers GET and HEAD only; login and logout, which the home site adds, are the only views that take a POST. A
database that cannot be reached is a page that says so.
"""

from collections.abc import Callable, Iterable
from typing import Any

import structlog
from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, include, path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from config.owners import OWNERS, Owner
from config.readonly_admin.admin import ReadOnlyAdmin, key_text

View = Callable[..., HttpResponse]
NOT_MIGRATED = "42P01"
"""SQLSTATE of a table that does not exist."""


class OperatorSite(AdminSite):
    """What home and sections share: the door, the frame around a page, and that nothing can be registered writable."""

    site_title = "Backbone"
    site_header = "Backbone"

    def register(
        self,
        model_or_iterable: type[Model] | Iterable[type[Model]],
        admin_class: "type[ModelAdmin[Any]] | None" = None,
        **options: Any,
    ) -> None:
        """Register read-only pages. Composite keys are welcome: these pages address a row by all of its key."""
        if admin_class is None or not issubclass(admin_class, ReadOnlyAdmin) or options:
            raise ImproperlyConfigured("Only ReadOnlyAdmin classes are registered here: operators change nothing.")
        models = [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        for model in models:
            self._registry[model] = admin_class(model, self)

    def admin_view(self, view: View, cacheable: bool = False) -> View:  # type: ignore[override]  # the stubs bind one type
        """The door: GET and HEAD, a staff login, and a clear page while a database is away."""

        def through_the_door(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if request.method not in {"GET", "HEAD"}:
                return HttpResponseNotAllowed(["GET", "HEAD"])
            try:
                if not self.has_permission(request):
                    return redirect_to_login(request.get_full_path(), reverse("admin:login"))
                structlog.contextvars.bind_contextvars(user_id=request.user.pk)
                return view(request, *args, **kwargs)
            except (OperationalError, InterfaceError, ProgrammingError) as error:
                return self.unavailable(request, error)

        return through_the_door if cacheable else never_cache(through_the_door)

    def unavailable(self, request: HttpRequest, error: DatabaseError | InterfaceError) -> HttpResponse:
        """503 with a reason; a programming error that is no missing table is raised again."""
        reason = reason_of(error)
        if reason is None:
            raise error
        return render(request, "operator/unavailable.html", {"title": "Unavailable", "reason": reason}, status=503)

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """The frame of every page; it asks no database."""
        return {
            "site_title": self.site_title,
            "site_header": self.site_header,
            "has_permission": self.has_permission(request),
            "sections": [section.navigation(request) for section in SECTIONS.values()],
            "now": timezone.now(),
        }

    def page_urls(self) -> list[URLPattern | URLResolver]:
        """The pages of everything registered."""
        registered = sorted(self._registry.values(), key=lambda page: getattr(page, "position", 0))
        return [path(f"{page.slug}/", include(page.get_urls())) for page in registered]  # type: ignore[attr-defined]  # ReadOnlyAdmin


class OwnerSection(OperatorSite):
    """One owner's pages, read through its read alias."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(name=owner.name)
        self.owner = owner
        self.summary: Callable[[HttpRequest, OwnerSection], dict[str, Any]] | None = None
        """What the section's first page shows above its list of pages, set by the roof."""

    @property
    def alias(self) -> str:
        """The one alias through which the section reads."""
        return self.owner.read_alias

    @property
    def urls(self) -> tuple[list[URLPattern | URLResolver], str, str]:
        return [path("", self.admin_view(self.index), name="index"), *self.page_urls()], "section", self.name

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:  # type: ignore[override]  # rendered at once, inside the door
        """The section's first page."""
        context = {
            **self.each_context(request),
            "title": self.owner.name.capitalize(),
            "section": self.navigation(request),
            **(self.summary(request, self) if self.summary else {}),
        }
        return render(request, "operator/section.html", context)

    def row_url(self, slug: str, *key: object) -> str:
        """The address of a row of the pages called `slug`."""
        return reverse(f"{self.name}:{slug}_row", args=[key_text(*key)])

    def navigation(self, request: HttpRequest) -> dict[str, Any]:
        """Its entry in the sidebar: groups of links, and which one is open."""
        groups: dict[str, list[dict[str, Any]]] = {}
        for page in sorted(self._registry.values(), key=lambda page: page.position):  # type: ignore[attr-defined]  # ReadOnlyAdmin
            url = reverse(f"{self.name}:{page.slug}")  # type: ignore[attr-defined]  # as above
            link = {"label": page.label, "url": url, "open": request.path.startswith(url), "about": page.about}  # type: ignore[attr-defined]  # as above
            groups.setdefault(page.group, []).append(link)  # type: ignore[attr-defined]  # as above
        url = reverse(f"{self.name}:index")
        return {
            "name": self.owner.name,
            "url": url,
            "open": request.path.startswith(url),
            "here": request.path == url,
            "groups": [{"name": name, "links": links} for name, links in groups.items()],
        }


SECTIONS = {owner.name: OwnerSection(owner) for owner in OWNERS}
"""One section per owner. Each owner's `admin.py` registers its pages in its own."""


def reason_of(error: DatabaseError | InterfaceError) -> str | None:
    """Why a database gave no answer, for people; None if the error is no matter of reaching it."""
    state = getattr(error.__cause__, "sqlstate", None)
    if isinstance(error, ProgrammingError):
        return "its tables are missing; run `manage.py migrate_owners`" if state == NOT_MIGRATED else None
    if state == "57014":
        return "it did not answer in time"
    if state in {"28P01", "28000"}:
        return "it refused the login of the read role"
    return "it cannot be reached"

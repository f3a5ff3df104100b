"""Nothing but login and logout takes a POST, and nobody without an operator's login sees a page."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from config.readonly_admin import SECTIONS, ReadOnlyAdmin
from outbox.models import OutboxEvent
from tests.admin.conftest import NAME, PASSWORD
from tests.admin.crawl import addresses, crawl, lists
from tests.admin.world import World

POSTS = {"/admin/login/", "/admin/logout/"}
"""Every address of the project that takes a POST from an operator."""
API = "/api/v1/"
NOT_FOR_OPERATORS = {401, 404}
"""What the API of claims and connectors answers to who belongs to no tenant and signs no event."""
WRITES = ("post", "put", "patch", "delete")


@pytest.mark.spec("O31")
def test_every_address_refuses_every_writing_method_but_posts_to_login_and_logout(looker: Client) -> None:
    for _, address in sorted(addresses(), key=lambda pair: pair[1] in POSTS):
        refused = {403, 405} | (NOT_FOR_OPERATORS if address.startswith(API) else set())
        for method in WRITES:
            answer = getattr(looker, method)(address, {"action": "delete_selected", "_selected_action": "1"})
            accepted = {200, 302} if method == "post" and address in POSTS else refused
            assert answer.status_code in accepted, f"{method} {address}: {answer.status_code}"


def test_login_and_logout_take_no_post_without_a_csrf_token(
    make_operator: Callable[..., None], static_files: None
) -> None:
    make_operator()
    strict = Client(enforce_csrf_checks=True)
    for address in POSTS:
        answer = strict.post(address, {"username": NAME, "password": PASSWORD})
        assert answer.status_code == 403


@pytest.mark.spec("O31")
def test_no_page_holds_a_form_that_posts_but_logout_nor_a_link_to_change_anything(looker: Client, world: World) -> None:
    for address, text in crawl(looker):
        forms = text.count('method="post"')
        assert forms == 1, f"{address}: {forms} forms that post"
        assert 'action="/admin/logout/"' in text
        for word in ("/add/", "/delete/", "/history/", "/change/", 'name="action"', "_selected_action"):
            assert word not in text, f"{address}: {word}"


def test_without_a_login_every_page_of_the_admin_leads_to_the_login(client: Client) -> None:
    pages = [address for _, address in addresses() if address.startswith("/admin/") and address not in POSTS]
    assert len(pages) > 50
    for address in pages:
        answer = client.get(address)
        assert answer.status_code == 302, address
        assert answer.headers["Location"].startswith("/admin/login/?next=/admin/"), address


def test_a_login_without_staff_sees_nothing(client: Client, make_operator: Callable[..., None]) -> None:
    make_operator()
    User.objects.using("default").filter(username=NAME).update(is_staff=False)
    answer = client.post("/admin/login/", {"username": NAME, "password": PASSWORD})
    assert answer.status_code == 200
    assert b"staff account" in answer.content


def test_a_staff_login_without_view_permission_is_refused_the_rows(looker: Client) -> None:
    User.objects.using("default").get(username=NAME).groups.clear()
    for _, address in lists():
        assert looker.get(address).status_code == 403


def test_only_read_only_pages_can_be_registered() -> None:
    from django.contrib.admin import ModelAdmin

    with pytest.raises(ImproperlyConfigured, match="change nothing"):
        SECTIONS["core"].register(OutboxEvent, ModelAdmin)
    assert all(
        isinstance(pages, ReadOnlyAdmin) for section in SECTIONS.values() for pages in section._registry.values()
    )


def test_a_page_address_that_no_list_made_is_a_clear_400(looker: Client) -> None:
    for cursor in ("a", "b", "x", "aW10", "a!!", "aWyJub3RoaW5nIiwgIm5vdGhpbmciXQ", "aWzFd", "\x00", "a\u00e9"):
        assert looker.get("/admin/core/deliveries/", {"at": cursor}).status_code == 400, cursor


def test_a_row_that_does_not_exist_is_a_404(looker: Client) -> None:
    for key in ("nothing", "a~b~c", "%00", "a_00", "a~b", "_7E", "01a22cdf-2ad4-76aa-b65e-a56fec150c1a~x", "a~_00"):
        for _, address in lists():
            assert looker.get(f"{address}{key}/").status_code == 404, f"{address}{key}"


def test_a_search_or_a_filter_with_odd_text_finds_nothing_and_breaks_nothing(looker: Client) -> None:
    for text in ("\x00", "'; DROP TABLE x; --", "\ud7ff", "<script>alert(1)</script>", "x" * 5000, "%", "\\", "~~~"):
        assert looker.get("/admin/search/", {"q": text}).status_code == 200
        for _, address in lists():
            answer = looker.get(address, {"q": text, "queue": text, "group": text, "state": text, "account": text})
            assert answer.status_code == (400 if "\x00" in text else 200), f"{address} {text[:40]!r}"
            assert b"<script>alert" not in answer.content

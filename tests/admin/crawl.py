"""Every page there is: from the address table, and from the links on the pages themselves."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any

from django.db import connections
from django.db.backends.signals import connection_created
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from config.readonly_admin import SECTIONS

LINK = re.compile(r'(?:href|action)="([^"]+)"')


def addresses(resolver: URLResolver | None = None, before: str = "/") -> Iterator[tuple[str, str]]:
    """(name, address) of every registered pattern; a row's key is filled with one that no row has."""
    for pattern in (resolver or get_resolver()).url_patterns:
        route = before + re.sub(r"<[^>]+>", "nothing", str(pattern.pattern)).replace("^", "").replace("$", "")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern, route)
        elif isinstance(pattern, URLPattern):
            yield f"{route} {pattern.name}", route


def lists() -> Iterator[tuple[Any, str]]:
    """Every list of every section: its pages and its address."""
    for section in SECTIONS.values():
        for pages in section._registry.values():
            yield pages, pages.list_url()  # type: ignore[attr-defined]  # ReadOnlyAdmin


def links(html: str) -> list[str]:
    """Addresses that a page leads to, in order."""
    return [unescape(link) for link in LINK.findall(html)]


def crawl(client: Client) -> Iterator[tuple[str, str]]:
    """(address, text) of home, sections, lists, their filters and pages, and the first row of each list."""
    wanted = ["/admin/", "/admin/search/?q=nothing", *(f"/admin/{name}/" for name in SECTIONS)]
    wanted += [url for _, url in lists()]
    seen: set[str] = set()
    while wanted:
        url = wanted.pop(0)
        if url in seen:
            continue
        seen.add(url)
        answer = client.get(url)
        assert answer.status_code == 200, f"{url}: {answer.status_code}"
        text = answer.content.decode()
        yield url, text
        if any(url == address for _, address in lists()):
            rows = [link for link in links(text) if link.startswith(url) and link != url]
            wanted += [link for link in rows if "?" in link]
            wanted += [link for link in rows if "?" not in link][:1]


@dataclass(frozen=True, slots=True)
class Ran:
    """One statement: on which alias, its text and its parameters."""

    alias: str
    sql: str
    parameters: Any


@contextmanager
def watching() -> Iterator[list[Ran]]:
    """Every statement that any connection of any thread runs meanwhile."""
    ran: list[Ran] = []

    def watch(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        ran.append(Ran(context["connection"].alias, sql, parameters))
        return execute(sql, parameters, many, context)

    def attach(connection: Any, **kwargs: Any) -> None:
        if watch not in connection.execute_wrappers:
            connection.execute_wrappers.append(watch)

    connection_created.connect(attach)
    for connection in connections.all():
        attach(connection)
    try:
        yield ran
    finally:
        connection_created.disconnect(attach)
        for connection in connections.all():
            if watch in connection.execute_wrappers:
                connection.execute_wrappers.remove(watch)

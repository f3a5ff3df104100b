"""Child: logs in as an operator, follows every link of the admin, and notes queries and time of each kind of page.

A kind is an address without its keys; of one kind some pages are opened, each twice, and the second time counts.
"""

import os
import re
import time
from collections import defaultdict
from html import unescape
from urllib.parse import urljoin, urlsplit

import django

from tests.bench import children

START = "/admin/"
PAGES_OF_A_KIND, PAGES = 3, 400
LINK = re.compile(r'href="([^"#]+)"')
KEY = re.compile(r"[0-9a-f]{8}[0-9a-f-]{4,}|(?<==)[^&]+|:[^/]+")
PASSWORD = "a long passphrase 7"


def main() -> None:
    os.environ["OPERATOR_PASSWORD"] = PASSWORD
    django.setup()
    from django.core.management import call_command
    from django.test import Client
    from django.test.utils import setup_test_environment

    setup_test_environment()
    call_command("collectstatic", interactive=False, verbosity=0)
    call_command("operator", "bench", verbosity=0)
    client = Client()
    entered = client.post("/admin/login/", {"username": "bench", "password": PASSWORD})
    assert entered.status_code == 302, entered.content
    children.wait_for_start()
    opened: dict[str, list[tuple[float, int, int]]] = defaultdict(list)
    queue, seen = [START], {START}
    while queue and sum(map(len, opened.values())) < PAGES:
        address = queue.pop(0)
        kind = KEY.sub("…", address)
        if len(opened[kind]) >= PAGES_OF_A_KIND:
            continue
        _open(client, address)
        milliseconds, queries, status, body = _open(client, address)
        opened[kind].append((milliseconds, queries, status))
        for link in LINK.findall(body):
            found = urljoin(address, unescape(link))
            if urlsplit(found).path.startswith(START) and "logout" not in found and found not in seen:
                seen.add(found)
                queue.append(found)
    children.answer(
        pages=[
            {"kind": kind, "ms": max(one[0] for one in pages), "queries": max(one[1] for one in pages),
             "statuses": sorted({one[2] for one in pages})}
            for kind, pages in opened.items()
        ]
    )  # fmt: skip


def _open(client: "object", address: str) -> tuple[float, int, int, str]:
    from contextlib import ExitStack

    from django.db import connections
    from django.test import Client

    assert isinstance(client, Client)
    counted = 0

    def count(execute, sql, params, many, context):  # type: ignore[no-untyped-def]  # Django's wrapper
        nonlocal counted
        counted += 1
        return execute(sql, params, many, context)

    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(count))
        started = time.perf_counter()
        answer = client.get(address)
        spent = time.perf_counter() - started
    body = answer.content.decode() if not answer.streaming and "html" in answer.get("Content-Type", "") else ""
    return spent * 1000, counted, answer.status_code, body


if __name__ == "__main__":
    main()

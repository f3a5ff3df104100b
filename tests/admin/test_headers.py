"""Pages load nothing from elsewhere and nothing inline, and a deployment's settings pass Django's own checks."""

import re
from collections.abc import Callable
from subprocess import CompletedProcess
from urllib.parse import urlsplit

from django.test import Client

from tests.admin.crawl import crawl
from tests.admin.world import World

LOADED = re.compile(r'(?:src|href|action|content|data)="([^"]*)"|url\(([^)]*)\)')


def test_no_page_names_a_foreign_host_or_holds_script_or_style_inline(looker: Client, world: World) -> None:
    for address, text in crawl(looker):
        for found in LOADED.findall(text):
            assert not urlsplit(found[0] or found[1]).netloc, f"{address}: {found}"
        assert not re.search(r"<script(?![^>]*\ssrc=)[^>]*>", text), address
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), address


def test_every_page_carries_a_strict_content_security_policy(looker: Client) -> None:
    for address in ("/admin/", "/admin/core/events/", "/admin/login/", "/admin/search/?q=x", "/nothing"):
        headers = looker.get(address).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin"


def test_pages_behind_the_login_are_not_kept_by_caches(looker: Client) -> None:
    for address in ("/admin/", "/admin/core/events/", "/admin/login/"):
        assert "no-store" in looker.get(address).headers["Cache-Control"]


def test_the_deployment_checks_of_django_find_nothing(run_django: Callable[..., CompletedProcess[str]]) -> None:
    done = run_django(
        "check", "--deploy", "--fail-level", "DEBUG",
        env={
            "DEPLOYED": "1",
            "SECRET_KEY": "k7Zp2vXq9LmT4sWc8RbN6yHd1FgJ3uKe5AoPiQxE0tYzMvB-4hG8nS1",
            "COMMERCIAL_HASH_KEY": "c3Rn8wVb5KqX1zTm7PdJ4hYs9GfL2aEo6UiN0kWx",
            "CONNECTOR_SEALING_KEYS": "Zt4Lq8Wn1Xv6Bc3Ms9Kd7Hf2Jg5Py0RaEuIoTzQw",
            "ALLOWED_HOSTS": "backbone.example",
        },
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues" in done.stdout


def test_a_deployment_without_a_secret_key_does_not_start(run_django: Callable[..., CompletedProcess[str]]) -> None:
    for missing, other in (("SECRET_KEY", "COMMERCIAL_HASH_KEY"), ("COMMERCIAL_HASH_KEY", "SECRET_KEY")):
        done = run_django("check", env={"DEPLOYED": "1", missing: "", other: "x" * 50})
        assert done.returncode != 0
        assert missing in done.stderr

"""Who is let in: access tokens, sessions with their CSRF token, and the tenants that both belong to (C5)."""

import io
import json
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client

from attachments.claims.members import Tenant, join
from attachments.claims.models import AccessToken, MembershipRole
from attachments.claims.tokens import hash_of, mint
from attachments.files import place
from config.password_hasher import KeptPassword
from tests.claims.person import account

pytestmark = [pytest.mark.spec("C5"), pytest.mark.usefixtures("database")]

ACME = Tenant("organization", "acme")
PASSWORD = "a long passphrase 7"


def run(command: str, *arguments: str) -> str:
    """What a command wrote to standard output."""
    written = io.StringIO()
    call_command(command, *arguments, stdout=written, stderr=io.StringIO())
    return written.getvalue()


def me(header: str | None) -> int:
    """The status of asking who calls."""
    return Client().get("/api/v1/me", headers={"Authorization": header} if header is not None else {}).status_code


def minted(name: str = "alice") -> str:
    """A token that the command printed."""
    account(name)
    run("members", "add", name, "--tenant", "organization:acme")
    return run("access_tokens", "mint", name, "--tenant", "organization:acme").strip()


def test_a_token_is_shown_once_kept_as_a_hash_and_lets_in() -> None:
    text = minted()
    (token,) = AccessToken.objects.using("attachments").all()
    assert token.token_sha256 == hash_of(text)
    told = Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}).json()
    assert told == {"userId": account("alice"), "tenant": "organization:acme", "isReviewer": False, "csrfToken": None}
    assert str(token.token_id) in run("access_tokens", "list")
    assert text not in run("access_tokens", "list")


def test_whatever_is_no_token_is_401_and_says_how() -> None:
    text = minted()
    for header in (
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {text}",
        f"Bearer {text}x",
        "Bearer \x7f",
        "Bearer " + "a" * 5000,
    ):
        answer = Client().get("/api/v1/me", headers={"Authorization": header} if header is not None else {})
        assert (answer.status_code, header) == (401, header)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert text.encode() not in answer.content


@pytest.mark.parametrize("how", ["revoked", "expired", "member-left", "account-inactive"])
def test_a_token_is_refused_as_soon_as_anything_behind_it_ended(how: str) -> None:
    text = minted()
    assert me(f"Bearer {text}") == 200
    token = AccessToken.objects.using("attachments").get()
    if how == "revoked":
        assert run("access_tokens", "revoke", str(token.token_id)) == "revoked\n"
        assert "nothing changed" in run("access_tokens", "revoke", str(token.token_id))
    elif how == "expired":
        with connections["attachments.schema"].cursor() as cursor:
            cursor.execute("ALTER TABLE access_tokens DISABLE TRIGGER USER")
            cursor.execute("UPDATE access_tokens SET issued_at = now() - interval '2 days', expires_at = now()")
            cursor.execute("ALTER TABLE access_tokens ENABLE TRIGGER USER")
    elif how == "member-left":
        run("members", "end", "alice", "--tenant", "organization:acme")
        assert run("members", "list") == ""
    else:
        User.objects.using("default").filter(username="alice").update(is_active=False)
    assert me(f"Bearer {text}") == 401


def test_the_commands_refuse_what_is_not_there_and_say_what_to_do() -> None:
    account("alice")
    for command, *arguments in (
        ("members", "add", "nobody", "--tenant", "organization:acme"),
        ("members", "add", "alice", "--tenant", "acme"),
        ("members", "end", "alice", "--tenant", "organization:acme"),
        ("members", "end", "nobody", "--tenant", "organization:acme"),
        ("access_tokens", "mint", "alice", "--tenant", "organization:acme"),
        ("access_tokens", "mint", "alice", "--tenant", "organization:acme", "--days", "0"),
        ("access_tokens", "revoke", str(uuid.uuid4())),
    ):
        with pytest.raises(CommandError):
            run(command, *arguments)
    run("members", "add", "alice", "--tenant", "organization:acme")
    run("members", "add", "alice", "--tenant", "organization:acme", "--role", "reviewer")
    assert run("members", "list") == "organization:acme  alice  reviewer\n"


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Client]:
    """Log alice in, in a browser that takes CSRF seriously."""
    monkeypatch.setattr(KeptPassword, "iterations", 1000)
    monkeypatch.setenv("OPERATOR_PASSWORD", PASSWORD)

    def log_in() -> Client:
        call_command("operator", "alice", verbosity=0)
        client = Client(enforce_csrf_checks=True)
        user = User.objects.using("default").get(username="alice")
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return log_in


def post(client: Client, path: str, sent: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    """Send JSON; status and answer."""
    answer = client.post(f"/api/v1{path}", json.dumps(sent), content_type="application/json", headers=headers)
    return answer.status_code, json.loads(answer.content)


def test_a_session_changes_only_with_its_csrf_token(browser: Callable[[], Client]) -> None:
    client = browser()
    assert client.get("/api/v1/me").status_code == 403
    join(user_id=account("alice"), tenant=ACME, role=MembershipRole.MEMBER)
    csrf = client.get("/api/v1/me").json()["csrfToken"]
    sent = {"number": "R-1", "title": "Trip"}
    assert post(client, "/claims", sent)[0] == 403
    assert post(client, "/claims", sent, **{"X-CSRFToken": "x" * 64})[0] == 403
    status, claim = post(client, "/claims", sent, **{"X-CSRFToken": csrf})
    assert status == 201
    assert client.delete(f"/api/v1/claims/{claim['claimId']}").status_code == 403
    assert client.delete(f"/api/v1/claims/{claim['claimId']}", headers={"X-CSRFToken": csrf}).status_code == 204
    assert post(client, "/claims", sent, **{"X-CSRFToken": csrf, "Authorization": "Bearer claims_wrong"})[0] == 401


def test_a_session_uploads_with_its_csrf_token_in_the_header(
    browser: Callable[[], Client], settings: Any, tmp_path: Path
) -> None:
    settings.ATTACHMENTS_ROOT, settings.ATTACHMENTS_INCOMING = tmp_path, tmp_path / ".incoming"
    place._tried.cache_clear()
    client = browser()
    join(user_id=account("alice"), tenant=ACME, role=MembershipRole.MEMBER)
    csrf = {"X-CSRFToken": client.get("/api/v1/me").json()["csrfToken"]}
    _, claim = post(client, "/claims", {"number": "R-1", "title": "Trip"}, **csrf)
    expense = {"description": "Hotel", "amountMinor": 1, "currency": "CHF"}
    _, item = post(client, f"/claims/{claim['claimId']}/items", expense, **csrf)
    to = f"/api/v1/claims/{claim['claimId']}/items/{item['itemId']}/attachments"
    in_form = {"file": SimpleUploadedFile("a.pdf", b"paper"), "csrfmiddlewaretoken": csrf["X-CSRFToken"]}
    assert client.post(to, in_form).status_code == 403
    answer = client.post(to, {"file": SimpleUploadedFile("a.pdf", b"paper")}, headers=csrf)
    assert (answer.status_code, answer.json()["sizeBytes"]) == (201, 5)
    place._tried.cache_clear()


def test_a_session_of_several_tenants_names_one_of_its_own(browser: Callable[[], Client]) -> None:
    client = browser()
    for tenant in (ACME, Tenant("personal", "alice")):
        join(user_id=account("alice"), tenant=tenant, role=MembershipRole.MEMBER)
    assert client.get("/api/v1/me").status_code == 400
    assert client.get("/api/v1/me", headers={"X-Tenant": "nonsense"}).status_code == 400
    assert client.get("/api/v1/me", headers={"X-Tenant": "organization:other"}).status_code == 403
    told = client.get("/api/v1/me", headers={"X-Tenant": "personal:alice"}).json()
    assert told["tenant"] == "personal:alice"


def test_the_document_names_every_call_its_problems_and_how_to_be_let_in() -> None:
    document = json.loads(Client().get("/api/v1/openapi.json").content)
    calls = {
        operation["operationId"]: operation
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if path.startswith(("/api/v1/claims", "/api/v1/me"))
    }
    assert len(calls) == 15
    for name, operation in calls.items():
        assert set(
            next(iter(operation["responses"]["404" if "404" in operation["responses"] else "401"]["content"]))
        ) == set("application/problem+json"), name
        assert operation["security"], name
    assert set(document["components"]["securitySchemes"]) == {"TokenDoor", "SessionDoor"}
    upload = calls["uploadAttachment"]
    assert "multipart/form-data" in upload["requestBody"]["content"]
    assert [one["name"] for one in upload["parameters"] if one["in"] == "header"] == ["X-Request-ID"]
    assert re.fullmatch(r"3\.\d\.\d", document["openapi"])


def test_a_token_lives_a_year_at_most() -> None:
    text = minted()
    assert text.startswith("claims_")
    with pytest.raises(Exception, match="access_token_life"):
        mint(user_id=account("alice"), tenant=ACME, life=timedelta(days=400))

"""The token API: what it answers, who may call it, and that a token is shown once (T2)."""

import json
import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
from django.test import Client

from metering.clusters.administrators import end, grant, mint, withdraw
from metering.clusters.clusters import create_cluster
from metering.clusters.contracts import ApiRefusal, RevokedToken, RotatedToken, TokenList
from metering.clusters.models import AdminAuditEntry, AdministratorToken, Mode, TokenState
from metering.clusters.secret_store import FileStore, Slot
from tests.clusters.conftest import ACTOR, audited, database_time, outcome, states

pytestmark = [pytest.mark.spec("T2")]
TOKENS = "/api/v1/admin/clusters/7/otlp-tokens"
ROTATE = f"{TOKENS}/rotate"


@pytest.fixture
def bearer(cluster: int, store: FileStore) -> str:
    """The Authorization header of administrator `robot`, who has no password."""
    grant(name="robot", actor=ACTOR)
    return "Bearer " + mint(name="robot", life=timedelta(days=1), actor=ACTOR).plaintext.text


@pytest.fixture
def call(bearer: str) -> Callable[..., Any]:
    """Call the API as administrator `robot`; CSRF is checked as in a browser."""
    client = Client(enforce_csrf_checks=True)

    def run(method: str, address: str, body: Any = None, *, status: int, **headers: str) -> Any:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        response = client.generic(
            method, address, data, content_type="application/json", headers={"Authorization": bearer, **headers}
        )
        assert response.status_code == status, response.content
        assert response.headers["Content-Type"] == "application/json"
        assert "no-store" in response.headers["Cache-Control"]
        return json.loads(response.content)

    return run


def csrf(client: Client) -> dict[str, str]:
    return {"X-CSRFToken": client.cookies["csrftoken"].value}


def refusal(response: Any) -> ApiRefusal:
    return ApiRefusal.parse(response.content)


def test_a_rotation_answers_with_the_token_which_nothing_else_ever_shows(
    call: Callable[..., Any], store: FileStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    first = call("POST", ROTATE, status=201)
    assert RotatedToken.from_wire(first).wire() == first
    assert outcome(b"Bearer " + first["token"].encode(), database_time()) == "accepted"
    assert (first["clusterId"], first["mode"], first["graceSeconds"], first["superseded"]) == (
        "7",
        "gateway",
        259_200,
        [],
    )
    second = call("POST", ROTATE, {"mode": "per_cluster"}, status=201)
    assert [one["tokenId"] for one in second["superseded"]] == [first["tokenId"]]
    listed = call("GET", TOKENS, status=200)
    assert TokenList.from_wire(listed).wire() == listed
    assert [(one["tokenId"], one["mode"], one["state"], one["accepted"]) for one in listed["tokens"]] == [
        (second["tokenId"], "per_cluster", "primary", True),
        (first["tokenId"], "gateway", "superseded", True),
    ]
    revoked = call("DELETE", f"{TOKENS}/{first['tokenId']}", status=200)
    assert RevokedToken.from_wire(revoked).revoked_before is False
    assert call("DELETE", f"{TOKENS}/{first['tokenId']}", status=200)["revokedBefore"] is True
    assert outcome(b"Bearer " + first["token"].encode(), database_time()) == "token_revoked"
    assert _hashes() != []
    shown = json.dumps([listed, revoked, call("GET", TOKENS, status=200)]) + caplog.text + _everything_stored()
    for secret in (first["token"], second["token"]):
        assert secret[5:25] not in shown
    for hash_ in _hashes():
        assert hash_ not in json.dumps(listed) + caplog.text


def _hashes() -> list[str]:
    with connections["metering.read"].cursor() as cursor:
        cursor.execute("SELECT token_sha256 FROM otlp_tokens UNION SELECT token_sha256 FROM administrator_tokens")
        return [value for (value,) in cursor.fetchall()]


def _everything_stored() -> str:
    """Every row of every table of `metering`, as text."""
    with connections["metering.read"].cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        texts = []
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT coalesce(string_agg(t::text, chr(10)), '') FROM \"{table}\" t")
            texts.append(cursor.fetchone()[0])
    return "\n".join(texts)


def test_everything_is_audited_with_who_did_it_and_what_was_shown(call: Callable[..., Any]) -> None:
    done = call("POST", ROTATE, status=201)
    call("DELETE", f"{TOKENS}/{done['tokenId']}", status=200)
    shown = AdministratorToken.objects.using("metering.read").get()
    entries = AdminAuditEntry.objects.using("metering.read").filter(token_id=done["tokenId"]).order_by("entry_id")
    assert [(one.action, one.actor, one.through, one.cluster_id) for one in entries] == [
        (f"token_{state}", "robot", f"administrator-token:{shown.token_id}", 7)
        for state in ("minted", "primary", "revoked")
    ]
    assert audited(cluster_id=None) == ["administrator_granted", "administrator_token_minted"]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"[]", "object"),
        (b"{", "JSON object"),
        (b"null", "object"),
        (b"\xff", "JSON object"),
        (b'{"mode": "both"}', "mode"),
        (b'{"mode": null}', "absent"),
        (b'{"mode": "gateway", "more": 1}', "more"),
        (b'{"mode": 1e400}', "per_cluster"),
        (b"[" * 4000, "JSON object"),
    ],
)
def test_a_body_that_says_something_else_is_a_400_and_rotates_nothing(
    call: Callable[..., Any], body: bytes, word: str
) -> None:
    refused = call("POST", ROTATE, body, status=400)
    assert refused["code"] == 40_000
    assert word in refused["message"]
    assert states(7) == []


@pytest.mark.parametrize("size", [4097, 3 * 2**20])
def test_a_body_that_is_too_large_is_a_413(call: Callable[..., Any], size: int) -> None:
    assert call("POST", ROTATE, b" " * size, status=413)["code"] == 41_300


@pytest.mark.parametrize("id", ["8", "0", "-7", "07", "7.0", "x", "%20", "9223372036854775808", "9" * 400, "\u0667"])
def test_a_cluster_that_is_not_there_is_a_404(call: Callable[..., Any], id: str) -> None:
    for method, address in (("POST", "/rotate"), ("GET", ""), ("DELETE", f"/{uuid4()}")):
        assert call(method, f"/api/v1/admin/clusters/{id}/otlp-tokens{address}", status=404)["code"] == 40_400


def test_a_token_that_is_not_this_clusters_is_a_404(call: Callable[..., Any]) -> None:
    create_cluster(cluster_id=8, name="eight", mode=Mode.GATEWAY, actor=ACTOR)
    other = call("POST", "/api/v1/admin/clusters/8/otlp-tokens/rotate", status=201)["tokenId"]
    for token_id in (other, str(uuid4()), "x", "%00", "1" * 500):
        assert call("DELETE", f"{TOKENS}/{token_id}", status=404)["code"] == 40_400
    assert states(8) == [TokenState.PRIMARY]


@pytest.mark.parametrize(
    ("address", "allowed"),
    [(ROTATE, "POST"), (TOKENS, "GET"), (f"{TOKENS}/6a6c338f-3498-4607-a296-bf6c0f605893", "DELETE")],
)
def test_each_address_answers_one_method(bearer: str, address: str, allowed: str) -> None:
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - {allowed}:
        response = Client().generic(method, address, headers={"Authorization": bearer})
        assert (response.status_code, response.headers["Allow"]) == (405, allowed)
    assert states(7) == []


def test_a_secret_store_that_is_away_is_a_503_that_says_rotate_again(call: Callable[..., Any], settings: Any) -> None:
    Path(settings.OTLP_SECRET_DIR).write_text("a file where the directory should be")
    assert call("POST", ROTATE, status=503)["code"] == 50_300
    assert "rotate again" in call("POST", ROTATE, status=503)["message"]
    Path(settings.OTLP_SECRET_DIR).unlink()
    last = call("POST", ROTATE, status=201)
    assert states(7) == [TokenState.SUPERSEDED, TokenState.SUPERSEDED, TokenState.PRIMARY]
    assert FileStore().read(cluster_id=7, slot=Slot.PRIMARY) == last["token"]


def test_the_writing_connection_is_given_up_after_each_call(call: Callable[..., Any]) -> None:
    call("POST", ROTATE, status=201)
    assert connections["metering"].connection is None


@pytest.mark.trap("T11")
@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic cm9ib3Q6eA==", "Bearer otlpadmin_wrong", "Bearer a b", "Token x"]
)
def test_a_wrong_credential_is_a_401_that_repeats_nothing_of_it(
    cluster: int, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for method, address in (("POST", ROTATE), ("GET", TOKENS), ("DELETE", f"{TOKENS}/{uuid4()}")):
        response = Client().generic(method, address, headers={"Authorization": header} if header else {})
        assert response.status_code == 401
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
        assert refusal(response).code == 40_100
        for secret in ("otlpadmin_wrong", "cm9ib3Q6eA"):
            assert secret not in response.content.decode() + caplog.text
    assert states(7) == []


def test_a_clusters_token_is_no_administrators_token_and_the_other_way_round(
    call: Callable[..., Any], bearer: str
) -> None:
    token = call("POST", ROTATE, status=201)["token"]
    assert Client().post(ROTATE, headers={"Authorization": f"Bearer {token}"}).status_code == 401
    assert outcome(bearer.encode(), database_time()) == "token_not_found"


def test_an_administrators_token_ends_with_its_time_its_revocation_its_account_and_its_permission(
    call: Callable[..., Any], bearer: str
) -> None:
    call("GET", TOKENS, status=200)
    robot = User.objects.using("default").filter(username="robot")
    robot.update(is_active=False)
    call("GET", TOKENS, status=403)
    robot.update(is_active=True)
    call("GET", TOKENS, status=200)
    robot.get().groups.clear()
    call("GET", TOKENS, status=403)
    grant(name="robot", actor=ACTOR)
    call("GET", TOKENS, status=200)
    end(token_id=AdministratorToken.objects.using("metering.read").get().token_id, actor=ACTOR)
    call("GET", TOKENS, status=401)
    short = mint(name="robot", life=timedelta(microseconds=1), actor=ACTOR)
    assert Client().get(TOKENS, headers={"Authorization": f"Bearer {short.plaintext.text}"}).status_code == 401
    last = mint(name="robot", life=timedelta(days=1), actor=ACTOR)
    header = {"Authorization": f"Bearer {last.plaintext.text}"}
    assert Client().get(TOKENS, headers=header).status_code == 200
    withdraw(name="robot", actor=ACTOR)
    assert Client().get(TOKENS, headers=header).status_code == 401


@pytest.mark.spec("O31")
def test_an_operator_who_may_look_at_everything_may_use_nothing_of_it(
    cluster: int, login: Callable[..., Client]
) -> None:
    client = login("looker")
    for method, address in (("POST", ROTATE), ("GET", TOKENS), ("DELETE", f"{TOKENS}/{uuid4()}")):
        response = client.generic(method, address, headers=csrf(client))
        assert response.status_code == 403
        assert "may not manage" in refusal(response).message
    assert states(7) == []


@pytest.mark.spec("O31")
def test_setting_an_operators_password_again_takes_an_administrators_permission_away(
    cluster: int, login: Callable[..., Client]
) -> None:
    client = login("alice")
    grant(name="alice", actor=ACTOR)
    assert client.get(TOKENS, headers=csrf(client)).status_code == 200
    call_command("operator", "alice", verbosity=0)
    assert client.get(TOKENS, headers=csrf(client)).status_code == 403


def test_a_session_of_an_administrator_needs_its_csrf_token_and_our_own_host(
    cluster: int, login: Callable[..., Client]
) -> None:
    client = login("alice")
    grant(name="alice", actor=ACTOR)
    for headers in ({}, {"X-CSRFToken": "x" * 64}):
        response = client.post(ROTATE, headers=headers)
        assert response.status_code == 403
        assert "CSRF" in refusal(response).message
    form = client.post(ROTATE, {"csrfmiddlewaretoken": "x" * 64})
    assert form.status_code == 403
    foreign = client.post(ROTATE, headers={**csrf(client), "Origin": "https://elsewhere.example"})
    assert foreign.status_code == 403
    assert states(7) == []
    done = client.post(ROTATE, b"", content_type="application/json", headers=csrf(client))
    assert done.status_code == 201
    token_id = RotatedToken.parse(done.content).token_id
    assert client.delete(f"{TOKENS}/{token_id}", headers={}).status_code == 403
    assert client.delete(f"{TOKENS}/{token_id}", headers=csrf(client)).status_code == 200
    assert {one.through for one in AdminAuditEntry.objects.using("metering.read").filter(token_id=token_id)} == {
        "session"
    }


def test_a_wrong_header_is_not_rescued_by_a_session(cluster: int, login: Callable[..., Client]) -> None:
    client = login("alice")
    grant(name="alice", actor=ACTOR)
    response = client.post(ROTATE, headers={**csrf(client), "Authorization": "Bearer wrong"})
    assert response.status_code == 401
    assert states(7) == []


def test_a_header_needs_no_csrf_token_since_no_browser_adds_it_by_itself(
    call: Callable[..., Any], login: Callable[..., Client]
) -> None:
    call("POST", ROTATE, status=201, Origin="https://elsewhere.example")

"""Uploads that are no uploads, and names that would be paths: 4xx and never 500, and nothing is left (C5, F6)."""

import socket
import unicodedata
from collections.abc import Iterator

import pytest

from tests.claims.conftest import LARGEST_BYTES, Web
from tests.claims.person import PATIENCE_SECONDS, Person
from tests.commercial.make import states
from tests.ground.waiting import until

pytestmark = pytest.mark.spec("C5")

BOUNDARY = "0123456789abcdef"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def form(*parts: tuple[str, bytes], end: str = f"--{BOUNDARY}--\r\n") -> bytes:
    """A multipart body of these parts: their headers and their bytes."""
    return b"".join(f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + body + b"\r\n" for head, body in parts) + end.encode()


def file_part(name: str = 'filename="a.pdf"', field: str = "file", more: str = "") -> str:
    return f'Content-Disposition: form-data; name="{field}"; {name}{more}'


GARBAGE: dict[str, tuple[dict[str, str], bytes]] = {
    "no-boundary": ({"Content-Type": "multipart/form-data"}, form((file_part(), b"x"))),
    "a-boundary-that-is-none": ({"Content-Type": "multipart/form-data; boundary=\xe9\xff"}, b"x"),
    "noise": (FORM, b"\x00\xff" * 500),
    "empty": (FORM, b""),
    "no-part": (FORM, form()),
    "another-part": (FORM, form((file_part(field="attachment"), b"x"))),
    "two-files": (FORM, form((file_part(), b"x"), (file_part(), b"y"))),
    "an-empty-file": (FORM, form((file_part(), b""))),
    "no-name": (FORM, form((file_part(name='filename=""'), b"x"))),
    "a-name-of-dots": (FORM, form((file_part(name='filename=".."'), b"x"))),
    "a-long-name": (FORM, form((file_part(name=f'filename="{"n" * 300}.pdf"'), b"x"))),
    "a-name-that-grows": (FORM, form((file_part(name=f'filename="{chr(0xFB2C) * 200}.pdf"'), b"x"))),
    "a-codec-that-is-none-of-text": (
        {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}; charset=hex"},
        form((file_part(), b"x")),
    ),
    "a-field": (FORM, form(('Content-Disposition: form-data; name="file"', b"x"))),
    "never-ends": (FORM, form((file_part(), b"x" * 1000), end="")),
    "broken-base64": (FORM, form((file_part(more="\r\nContent-Transfer-Encoding: base64"), b"abc"))),
    "many-fields": (FORM, form(*[('Content-Disposition: form-data; name="a"', b"")] * 1200)),
    "endless-headers": (FORM, form((file_part(more="\r\nX-More: " + "m" * 20_000), b"x"))),
}


@pytest.mark.trap("F6")
def test_garbage_is_400_and_leaves_nothing(alice: Person, web: Web) -> None:
    place = alice.place()
    for told, (headers, body) in GARBAGE.items():
        answer = alice.call("post", place, headers=headers, data=body)
        assert (answer.status_code, told) == (400, told), answer.text
        assert answer.json()["type"] == "urn:backbone:problem:invalid-request"
    assert (web.files(), web.incoming(), states()) == ({}, [], [])
    assert alice.call("post", place, json={"file": "x"}).status_code == 415
    packed = {**FORM, "Content-Encoding": "gzip"}
    assert alice.call("post", place, headers=packed, data=form((file_part(), b"x"))).status_code == 415
    loud = {"Content-Type": f"Multipart/Form-Data; boundary={BOUNDARY}"}
    assert alice.call("post", place, headers=loud, data=form((file_part(), b"x"))).status_code == 201


NAMES = {
    "../../etc/passwd": "passwd",
    "..\\..\\boot.ini": "boot.ini",
    "zero\x00byte.pdf": "zerobyte.pdf",
    "CON": "CON",
    "nul.txt": "nul.txt",
    "n" * 251 + ".pdf": "n" * 251 + ".pdf",
    unicodedata.normalize("NFD", "Beleg Zürich é.pdf"): unicodedata.normalize("NFC", "Beleg Zürich é.pdf"),
    "right\u202eto-left.pdf": "rightto-left.pdf",
    "<script>.html": "<script>.html",
    "a b;c=d.pdf": "a b;c=d.pdf",
    "发票 七月.pdf": "发票 七月.pdf",
}


@pytest.mark.trap("F6")
def test_a_name_stands_in_the_database_and_in_no_path(alice: Person, web: Web) -> None:
    place = alice.place()
    for number, (sent, kept) in enumerate(NAMES.items()):
        content = f"paper {number}".encode()
        quoted = sent.replace("\\", "\\\\")
        body = form((file_part(name=f'filename="{quoted}"'), content))
        answer = alice.call("post", place, headers=FORM, data=body)
        assert (answer.status_code, answer.json().get("name")) == (201, kept), answer.text
        attachment = f"{place}/{answer.json()['attachmentId']}"
        downloaded = alice.call("get", f"{attachment}/content")
        assert downloaded.content == content
        assert downloaded.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
        assert downloaded.headers["X-Content-Type-Options"] == "nosniff"
    paths = list(web.files())
    assert len(paths) == len(NAMES)
    assert not [path for path in paths if not set(path) <= set("0123456789abcdef-/")]


def test_what_is_too_large_is_413_however_it_is_sent(alice: Person, web: Web) -> None:
    place = alice.place()
    large = form((file_part(), b"x" * (LARGEST_BYTES + 1)))
    beyond = form((file_part(), b"x" * (LARGEST_BYTES + 64 * 1024)))

    def chunked() -> Iterator[bytes]:
        yield from (beyond[at : at + 65536] for at in range(0, len(beyond), 65536))

    assert alice.call("post", place, headers=FORM, data=large).status_code == 413
    answer = alice.call("post", place, headers=FORM, data=chunked())
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:backbone:problem:too-large")
    assert (web.files(), web.incoming(), states()) == ({}, [], [])


def test_a_body_without_a_length_is_stored_as_a_whole(alice: Person, web: Web) -> None:
    place, content = alice.place(), b"chunk" * 1500
    body = form((file_part(), content))
    answer = alice.call("post", place, headers=FORM, data=(body[at : at + 1000] for at in range(0, len(body), 1000)))
    assert answer.status_code == 201, answer.text
    assert list(web.files().values()) == [content]


def test_a_large_body_of_somebody_unknown_is_refused_before_it_is_read(alice: Person, web: Web) -> None:
    path = f"/api/v1{alice.place()}"
    for credential in ("", "Authorization: Bearer claims_wrong\r\n", "Cookie: sessionid=wrong\r\n"):
        with socket.create_connection(web.address(), timeout=PATIENCE_SECONDS) as sender:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LARGEST_BYTES}\r\n{credential}\r\n"
            sender.sendall(head.encode())
            assert b" 401 " in sender.recv(65536).partition(b"\r\n")[0]


def test_who_goes_away_in_the_middle_leaves_nothing(alice: Person, web: Web) -> None:
    path = f"/api/v1{alice.place()}"
    body = form((file_part(), b"x" * 200_000))
    with socket.create_connection(web.address(), timeout=PATIENCE_SECONDS) as sender:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            f"Content-Type: {FORM['Content-Type']}\r\nAuthorization: Bearer {alice.token}\r\n\r\n"
        )
        sender.sendall(head.encode() + body[: len(body) // 2])
    assert alice.upload(b"paper", to=alice.place())
    until(lambda: web.incoming() == [])
    assert list(web.files().values()) == [b"paper"]
    assert len(states()) == 1


@pytest.mark.trap("T14")
def test_whose_body_stops_coming_is_told_so_and_leaves_nothing(alice: Person, web: Web) -> None:
    path = f"/api/v1{alice.place()}"
    with socket.create_connection(web.address(), timeout=PATIENCE_SECONDS) as sender:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            f"Content-Type: {FORM['Content-Type']}\r\nAuthorization: Bearer {alice.token}\r\n\r\n"
        )
        sender.sendall(head.encode() + b"x" * 500)
        assert b" 408 " in sender.recv(65536).partition(b"\r\n")[0]
    assert (web.files(), web.incoming(), states()) == ({}, [], [])

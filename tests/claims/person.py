"""A person with an access token, as a program of theirs calls the API over real HTTP."""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import requests
from django.contrib.auth.models import User

from attachments.claims.members import Tenant, join
from attachments.claims.models import MembershipRole
from attachments.claims.tokens import mint

PATIENCE_SECONDS = 60
API = "/api/v1"


def account(name: str) -> int:
    """The id of an active account of core's login, made if it is not there."""
    found = User.objects.using("default").filter(username=name).first()
    if found is None:
        found = User(username=name)
        found.set_unusable_password()
        found.save(using="default")
    return int(found.pk)


@dataclass
class Person:
    """Calls with a token of this account in this tenant."""

    base: str
    tenant: str
    name: str = "alice"
    role: MembershipRole = MembershipRole.MEMBER
    token: str = field(init=False)
    token_id: uuid.UUID = field(init=False)
    user_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.user_id = account(self.name)
        tenant = Tenant.parse(self.tenant)
        join(user_id=self.user_id, tenant=tenant, role=self.role)
        minted = mint(user_id=self.user_id, tenant=tenant, life=timedelta(days=1))
        self.token, self.token_id = minted.text, minted.token_id

    def call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **sent: Any) -> requests.Response:
        """One request below `/api/v1`."""
        return requests.request(
            method,
            f"{self.base}{API}{path}",
            headers={"Authorization": f"Bearer {self.token}", **(headers or {})},
            timeout=PATIENCE_SECONDS,
            allow_redirects=False,
            **sent,
        )

    def claim(self, number: str | None = None, title: str = "Trip to Basel") -> str:
        """Begin a claim; its id."""
        answer = self.call("post", "/claims", json={"number": number or uuid.uuid4().hex, "title": title})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["claimId"])

    def item(self, claim: str, description: str = "Hotel") -> str:
        """Add an item; its id."""
        answer = self.call(
            "post",
            f"/claims/{claim}/items",
            json={"description": description, "amountMinor": 11800, "currency": "CHF"},
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["itemId"])

    def place(self, title: str = "Trip to Basel") -> str:
        """A fresh claim with one item: the path under which its attachments are."""
        claim = self.claim(title=title)
        return f"/claims/{claim}/items/{self.item(claim)}/attachments"

    def send(
        self, content: bytes, *, to: str, name: str = "receipt.pdf", method: str = "post", request_id: str | None = None
    ) -> requests.Response:
        """Upload to a place, or with `put` to an attachment."""
        headers = {"X-Request-ID": request_id} if request_id else {}
        return self.call(method, to, headers=headers, files={"file": (name, content, "application/pdf")})

    def upload(self, content: bytes, *, to: str, **how: Any) -> str:
        """Upload; the path of the attachment."""
        answer = self.send(content, to=to, **how)
        assert answer.status_code in {200, 201}, answer.text
        return f"{to}/{answer.json()['attachmentId']}"

    def content(self, attachment: str) -> bytes:
        """Download."""
        answer = self.call("get", f"{attachment}/content")
        assert answer.status_code == 200, answer.text
        return answer.content

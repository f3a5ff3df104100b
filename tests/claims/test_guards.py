"""What must never happen to claims is refused by their database, to every login role."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from attachments.claims.drafts import submit_claim
from attachments.claims.members import Tenant, join
from attachments.claims.models import MembershipRole
from attachments.claims.tokens import mint
from attachments.files import place
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.claims.make import item_of, uploaded, user

pytestmark = [pytest.mark.spec("C5"), pytest.mark.usefixtures("written")]

LIFE = timedelta(days=1)
NEW = f"'{uuid.UUID(int=7)}'"
HASH = "repeat('a', 64)"
DRAFT_ITEM = "(SELECT item_id FROM claim_items JOIN claims USING (claim_id) WHERE state = 'draft' LIMIT 1)"
SUBMITTED = "(SELECT claim_id FROM claims WHERE state = 'submitted')"
SUBMITTED_ITEM = f"(SELECT item_id FROM claim_items WHERE claim_id = {SUBMITTED} LIMIT 1)"
ROWS: dict[str, dict[str, str]] = {
    "tenant_memberships": {
        "membership_id": NEW, "user_id": "9", "tenant_kind": "'organization'", "tenant_id": "'acme'",
        "role": "'member'",
    },
    "access_tokens": {
        "token_id": NEW, "membership_id": "(SELECT membership_id FROM tenant_memberships LIMIT 1)",
        "token_sha256": HASH, "expires_at": "now() + interval '1 day'",
    },
    "claims": {
        "claim_id": NEW, "tenant_kind": "'organization'", "tenant_id": "'acme'", "created_by": "7", "number": "'1'",
        "title": "'t'",
    },
    "claim_items": {
        "item_id": NEW, "claim_id": "(SELECT claim_id FROM claims WHERE state = 'draft' LIMIT 1)",
        "description": "'d'", "amount_minor": "1", "currency": "'CHF'",
    },
    "claim_attachments": {
        "attachment_id": NEW, "item_id": DRAFT_ITEM, "origin_sha256": HASH, "content_id": NEW, "name": "'n'",
        "media_type": "'a/b'", "size_bytes": "1", "content_sha256": HASH,
    },
    "attachment_uploads": {
        "upload_sha256": HASH, "tenant_kind": "'organization'", "tenant_id": "'acme'", "claim_id": NEW, "item_id": NEW,
        "size_bytes": "1", "content_sha256": HASH, "is_metered": "true",
    },
}  # fmt: skip


@pytest.fixture
def written(database: None, settings: Any, tmp_path: Any) -> None:
    """A draft and a submitted claim with attachments, a member with a token, and one who left."""
    settings.ATTACHMENTS_ROOT, settings.ATTACHMENTS_INCOMING = tmp_path, tmp_path / ".incoming"
    place._tried.cache_clear()
    who = user()
    for number in ("draft", "submitted"):
        uploaded(who, item_of(who, number=number), number.encode())
    with connections["attachments"].cursor() as cursor:
        cursor.execute("SELECT claim_id FROM claims WHERE number = 'submitted'")
        submit_claim(who, cursor.fetchone()[0])
    join(user_id=7, tenant=Tenant("organization", "acme"), role=MembershipRole.MEMBER)
    mint(user_id=7, tenant=Tenant("organization", "acme"), life=LIFE)


def row(table: str, **columns: str) -> str:
    whole = ROWS[table] | columns
    return f"INSERT INTO {table} ({', '.join(whole)}) VALUES ({', '.join(whole.values())})"


WRONG_ROWS: list[tuple[str, str, dict[str, str]]] = [
    ("membership_tenant_kind_closed", "tenant_memberships", {"tenant_kind": "'planet'"}),
    ("membership_tenant", "tenant_memberships", {"tenant_id": "'a b'"}),
    ("membership_role_closed", "tenant_memberships", {"role": "'king'"}),
    ("membership_half_open", "tenant_memberships", {"ended_at": "now() - interval '1 day'"}),
    ("membership_once", "tenant_memberships", {"user_id": "7"}),
    ("access_token_hash", "access_tokens", {"token_sha256": "'plain'"}),
    ("access_token_life", "access_tokens", {"expires_at": "now() + interval '400 days'"}),
    ("access_tokens_token_sha256_key", "access_tokens", {"token_sha256": "(SELECT token_sha256 FROM access_tokens)"}),
    ("claim_tenant_kind_closed", "claims", {"tenant_kind": "'planet'"}),
    ("claim_tenant", "claims", {"tenant_id": "''"}),
    ("claim_number", "claims", {"number": "''"}),
    ("claim_title", "claims", {"title": "E'a\\nb'"}),
    ("claim_born_draft", "claims", {"state": "'submitted'", "submitted_at": "now()"}),
    ("claim_submitted_has_time", "claims", {"submitted_at": "now()"}),
    ("claim_item_description", "claim_items", {"description": "repeat('d', 201)"}),
    ("claim_item_amount", "claim_items", {"amount_minor": "-1"}),
    ("claim_item_currency", "claim_items", {"currency": "'chf'"}),
    ("claim_item_in_draft", "claim_items", {"claim_id": SUBMITTED}),
    ("claim_item_in_draft", "claim_items", {"claim_id": NEW}),
    ("claim_attachment_name", "claim_attachments", {"name": "repeat('n', 256)"}),
    ("claim_attachment_media_type", "claim_attachments", {"media_type": "'a b'"}),
    ("claim_attachment_size", "claim_attachments", {"size_bytes": "0"}),
    ("claim_attachment_digest", "claim_attachments", {"content_sha256": "'x'"}),
    ("claim_attachment_origin", "claim_attachments", {"origin_sha256": "'x'"}),
    ("claim_attachment_order", "claim_attachments", {"stored_at": "now() - interval '1 day'"}),
    ("claim_attachment_in_draft", "claim_attachments", {"item_id": SUBMITTED_ITEM}),
    (
        "claim_attachment_once",
        "claim_attachments",
        {"origin_sha256": f"(SELECT origin_sha256 FROM claim_attachments WHERE item_id = {DRAFT_ITEM})"},
    ),
    (
        "claim_attachments_content_id_key",
        "claim_attachments",
        {"content_id": "(SELECT content_id FROM claim_attachments LIMIT 1)"},
    ),
    ("attachment_upload_identity", "attachment_uploads", {"upload_sha256": "'x'"}),
    ("attachment_upload_digest", "attachment_uploads", {"content_sha256": "'x'"}),
    ("attachment_upload_size", "attachment_uploads", {"size_bytes": "0"}),
    ("attachment_upload_tenant_kind", "attachment_uploads", {"tenant_kind": "'planet'"}),
    ("attachment_upload_tenant", "attachment_uploads", {"tenant_id": "''"}),
]


def test_rows_that_must_not_be_are_refused_to_owner_and_schema_alike() -> None:
    for alias in ("attachments", "attachments.schema"):
        for constraint, table, columns in WRONG_ROWS:
            assert refusal_of(alias, row(table, **columns)) == constraint, (alias, columns)
        state = "UPDATE claims SET state = 'lost' WHERE state = 'draft'"
        assert refusal_of(alias, state) in {"claim_state_closed", "claim_submitted_has_time"}


CHANGES: list[tuple[str, str]] = [
    ("membership_frozen", "UPDATE tenant_memberships SET user_id = 8"),
    ("membership_delete", "DELETE FROM tenant_memberships WHERE user_id = 9"),
    ("access_token_frozen", "UPDATE access_tokens SET expires_at = expires_at + interval '1 day'"),
    ("access_token_delete", "DELETE FROM access_tokens"),
    ("claim_frozen", "UPDATE claims SET number = '9' WHERE state = 'draft'"),
    ("claim_submitted_stays", "UPDATE claims SET title = 'other' WHERE state = 'submitted'"),
    ("claim_submitted_stays", "DELETE FROM claims WHERE state = 'submitted'"),
    ("claim_item_frozen", f"UPDATE claim_items SET created_at = now() WHERE item_id = {DRAFT_ITEM}"),
    ("claim_item_in_draft", f"UPDATE claim_items SET amount_minor = 0 WHERE claim_id = {SUBMITTED}"),
    ("claim_item_in_draft", f"DELETE FROM claim_items WHERE claim_id = {SUBMITTED}"),
    ("claim_attachment_frozen", f"UPDATE claim_attachments SET created_at = now() WHERE item_id = {DRAFT_ITEM}"),
    ("claim_attachment_fresh", f"UPDATE claim_attachments SET size_bytes = 99 WHERE item_id = {DRAFT_ITEM}"),
    ("claim_attachment_in_draft", f"UPDATE claim_attachments SET name = 'x' WHERE item_id = {SUBMITTED_ITEM}"),
    ("claim_attachment_in_draft", f"DELETE FROM claim_attachments WHERE item_id = {SUBMITTED_ITEM}"),
    ("attachment_upload_frozen", "UPDATE attachment_uploads SET size_bytes = 1"),
    ("attachment_upload_frozen", "UPDATE attachment_uploads SET is_metered = false"),
    ("attachment_upload_delete", "DELETE FROM attachment_uploads"),
]


@pytest.mark.trap("D30")
def test_changes_that_must_not_be_are_refused_even_to_the_owner_of_the_tables() -> None:
    ignore = "SET pgtrigger.ignore = 'all'"
    for guard, statement in CHANGES:
        extra = [row("tenant_memberships")] if "user_id = 9" in statement else []
        assert refusal_of("attachments.schema", ignore, *extra, statement) == guard, statement
        assert refusal_of("attachments.read", statement) == NO_PRIVILEGE
    for table, guard in {
        "tenant_memberships, access_tokens": "_truncate", "access_tokens": "access_token_truncate",
        "claim_attachments": "claim_attachment_truncate", "attachment_uploads": "attachment_upload_truncate",
        "claim_items, claim_attachments": "_truncate", "claims, claim_items, claim_attachments": "_truncate",
    }.items():  # fmt: skip
        assert refusal_of("attachments.schema", ignore, f"TRUNCATE {table}").endswith(guard)


def test_the_owner_role_may_write_what_this_room_writes_and_nothing_else() -> None:
    for statement in (
        "DELETE FROM attachment_uploads",
        "DELETE FROM access_tokens",
        "DELETE FROM tenant_memberships",
        "UPDATE claims SET tenant_id = 'other'",
        "UPDATE claim_attachments SET item_id = item_id",
        "UPDATE attachment_uploads SET size_bytes = 1",
        "UPDATE access_tokens SET token_sha256 = token_sha256",
        "TRUNCATE claims CASCADE",
    ):
        assert refusal_of("attachments", statement) == NO_PRIVILEGE, statement
    for table in ROWS:
        assert refusal_of("attachments.read", row(table)) == NO_PRIVILEGE
        assert refusal_of("attachments.journal", row(table)) == NO_PRIVILEGE

"""Commercial facts hold keyed hashes of who did what, and nothing by which anybody could tell it (C7)."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from billing.commercial import hooks
from billing.commercial.hooks import Operation, keyed_hash
from tests.commercial.conftest import swept_now
from tests.commercial.make import AT, BUSINESS, operation, rows, subscribe, usage
from tests.commercial.notes import Interrupted, notes, write_note
from tests.commercial.scan import commercial_text, found_in

pytestmark = [pytest.mark.usefixtures("business"), pytest.mark.spec("C7")]

FILE_NAME = "travel-receipt-Zürich.pdf"
CLAIM = "CLM-2026-004711"
EXTERNAL_ID = "evt_external_8812"
SESSION = "session-of-a-person"
BODY = "Hotel Baur au Lac, two nights, 1180 francs"
SECRETS = (FILE_NAME, CLAIM, EXTERNAL_ID, SESSION, BODY)


def test_no_commercial_row_holds_a_name_a_number_an_external_id_or_content(tmp_path: Path) -> None:
    contract = subscribe(limit=5)
    request = f"{SESSION} {CLAIM} {EXTERNAL_ID}"
    for number in range(3):
        write_note(contract, FILE_NAME, BODY, place=tmp_path, request=f"{request} {number}")
    with pytest.raises(Interrupted):
        write_note(contract, CLAIM, BODY, place=tmp_path, request=request, fails=True)
    hooks.reserve(operation(contract, *SECRETS), quantity=1, using=BUSINESS, at=AT)
    swept_now()
    hooks.reserve(operation(contract, *SECRETS, provider="bank_one"), quantity=1, using=BUSINESS, at=AT)
    with pytest.raises(hooks.QuotaExceeded) as refused:
        hooks.reserve(operation(contract, EXTERNAL_ID), quantity=9, using=BUSINESS, at=AT)
    with pytest.raises(hooks.OperationConflict) as conflict:
        hooks.reserve(operation(contract, *SECRETS), quantity=2, using=BUSINESS, at=AT)
    text = commercial_text()
    assert (usage(), len(notes()), "bank_one" in text) == (3, 1, True)
    assert text.count("\n") > 15
    assert found_in(text, *SECRETS) == []
    assert found_in(f"{refused.value} {conflict.value} {operation(contract, *SECRETS)!r}", *SECRETS) == []


def test_the_scan_finds_what_stands_in_a_row() -> None:
    contract = subscribe()
    hooks.reserve(operation(contract), quantity=1, using=BUSINESS, at=AT)
    assert found_in(commercial_text(), contract.tenant_id, "nothing of this kind") == [contract.tenant_id]


def test_an_identity_that_can_be_guessed_cannot_be_tried_out_without_the_key(settings: Any) -> None:
    contract = subscribe()
    wanted = operation(contract, CLAIM)
    hooks.reserve(wanted, quantity=1, using=BUSINESS, at=AT)
    ((stored,),) = rows("SELECT operation_sha256 FROM commercial_runtime_reservations")
    parts = ["operation@1", BUSINESS, wanted.tenant_ref, wanted.tool, wanted.dimension, CLAIM]
    guesses = {
        hashlib.sha256(text.encode()).hexdigest()
        for text in (CLAIM, "".join(parts), " ".join(parts), json.dumps(parts, separators=(",", ":")))
    }
    assert stored not in guesses
    assert stored == keyed_hash(*parts)
    settings.COMMERCIAL_HASH_KEY = "another key of more than thirty-two characters"
    assert keyed_hash(*parts) != stored


def test_any_text_is_an_identity() -> None:
    contract = subscribe()
    odd = ["\x00", "\ud800", "x" * 100_000, 'quote " and \\', "中文", " "]
    for identity in odd:
        hooks.reserve(operation(contract, identity), quantity=1, using=BUSINESS, at=AT)
    assert rows("SELECT count(DISTINCT operation_sha256) FROM commercial_runtime_reservations") == [(len(odd),)]


def test_a_short_key_stops_the_start(settings: Any) -> None:
    assert not [found for found in run_checks() if found.id == "commercial.E001"]
    settings.COMMERCIAL_HASH_KEY = "short"
    assert [found.id for found in run_checks() if found.id == "commercial.E001"] == ["commercial.E001"]


def test_the_columns_of_usage_are_these() -> None:
    """Another column would be another thing that a usage event tells."""
    found = {
        name
        for (name,) in rows(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'usage_meter_events'::regclass AND attnum > 0"
        )
    }
    assert found == {
        "reservation_id", "generation", "operation_sha256", "period_id", "meter_id", "entitlement_id", "tool",
        "dimension", "quantity_basis", "quantity", "provider_code", "source", "occurred_at", "recorded_at",
    }  # fmt: skip


def test_an_operation_never_shows_its_identity() -> None:
    shown = repr(
        Operation(
            tenant_kind="organization", tenant_id="org:1", tool="notes", dimension="note.write",
            quantity_basis="events", identity=SECRETS,
        )
    )  # fmt: skip
    assert found_in(shown, *SECRETS) == []

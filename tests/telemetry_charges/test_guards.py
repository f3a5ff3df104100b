"""What the database itself refuses about charges, for every login role."""

import pytest
from django.db import connections

from billing.ledger.accounts import lock_accounts, open_account
from billing.ledger.charge import Charge, charge
from billing.ledger.errors import AccountConflict, WrongChargeSource
from billing.ledger.models import ChargeSource
from billing.ledger.post import ALIAS, translated_transaction
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.telemetry_charges.make import INPUT, payer, post_one, usage

COLUMNS = (
    "charge_id, generation, previous_generation, schema_version, digest_algorithm_version, digest, candidate,"
    " price_book_id, amount_picos, delta_picos, posting_id"
)
HEAD = (
    "charge_id, event_kind, cluster_id, window_start, window_end, organization_id, applies_to, billing_account_id,"
    " currency"
)
TABLES = ("telemetry_charges", "telemetry_charge_generations")
OF_RUNS = "(SELECT billing_account_id FROM billing_accounts WHERE charge_source = 'runs')"


@pytest.fixture(autouse=True)
def posted(database: None) -> None:
    """One charge with two generations, of an account that is charged from telemetry; one of runs beside it."""
    payer(organization="org-runs", source=ChargeSource.RUNS)
    payer()
    post_one(usage(1))
    post_one(usage(2, used={INPUT: 1}))


def copied(columns: str, table: str, where: str = "true", **changed: str) -> str:
    """Insert a copy of a row with some columns changed."""
    values = ", ".join(changed.get(name.strip(), name.strip()) for name in columns.split(","))
    return f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table} WHERE {where}"


def next_generation(**changed: str) -> str:
    """The generation after the second: the same amount, so nothing to post."""
    text = "replace(candidate, '\"generation\":2,', '\"generation\":3,')"
    told = {
        "generation": "3", "previous_generation": "2", "delta_picos": "0", "posting_id": "NULL", "candidate": text,
        "digest": f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')",
    }  # fmt: skip
    return copied(COLUMNS, "telemetry_charge_generations", "generation = 2", **{**told, **changed})


@pytest.mark.parametrize("alias", [ALIAS, "billing.schema"])
@pytest.mark.parametrize(
    ("constraint", "changed"),
    [
        ("telemetry_charge_digest", {"digest": "repeat('0', 64)"}),
        ("telemetry_charge_columns", {"candidate": "candidate", "digest": "digest"}),
        ("telemetry_charge_delta", {"amount_picos": "amount_picos + 1"}),
        ("telemetry_charge_posts_differences", {"amount_picos": "amount_picos + 1", "delta_picos": "1"}),
        ("telemetry_charge_posts_differences", {"posting_id": "'top-up:x'"}),
        ("telemetry_charge_not_negative", {"amount_picos": "-1"}),
        ("telemetry_charge_generations_rise", {"previous_generation": "3"}),
        ("telemetry_charge_generations_rise", {"generation": "0", "previous_generation": "NULL"}),
        ("telemetry_charge_one_chain", {"previous_generation": "1"}),
        ("telemetry_charge_one_chain", {"previous_generation": "NULL"}),
        ("telemetry_charge_schema_version", {"schema_version": "'2'"}),
        ("telemetry_charge_follows", {"generation": "9", "previous_generation": "7"}),
        ("telemetry_charge_generations_pkey", {"generation": "2", "previous_generation": "NULL"}),
    ],
)
def test_a_generation_that_does_not_add_up_is_refused(alias: str, constraint: str, changed: dict[str, str]) -> None:
    found = refusal_of(alias, next_generation(**changed))
    assert found in {constraint, "telemetry_charge_one_chain"} if "pkey" in constraint else found == constraint


def test_a_generation_that_adds_up_is_accepted() -> None:
    with pytest.raises(AssertionError, match="accepted"):
        refusal_of(ALIAS, next_generation())


def test_a_posting_must_move_the_difference_of_its_own_generation() -> None:
    posting = (
        "INSERT INTO ledger_postings (reference, kind, billing_account_id, charge_source, content_sha256, entry_count)"
        " SELECT 'charge:x', 'charge', billing_account_id, 'telemetry', repeat('a', 64), 2 FROM telemetry_charges"
    )
    entries = (
        "INSERT INTO ledger_entries (posting_id, line, ledger_account_id, currency, amount_picos)"
        " SELECT 'charge:x', line, kind || billing_account_id, 'USD', picos FROM telemetry_charges,"
        " (VALUES (1, 'wallet:', -5), (2, 'revenue:', 5)) v (line, kind, picos)"
    )
    assert refusal_of(ALIAS, posting, entries) == "telemetry_charge_of_posting"
    more = {"amount_picos": "amount_picos + 4", "delta_picos": "4", "posting_id": "'charge:x'"}
    assert refusal_of(ALIAS, posting, entries, next_generation(**more)) == "telemetry_charge_posting"
    top_up = {"amount_picos": "amount_picos + 4", "delta_picos": "4", "posting_id": "p.reference"}
    borrowed = next_generation(**top_up).replace(
        "FROM telemetry_charge_generations", "FROM telemetry_charge_generations, ledger_postings p"
    )
    assert refusal_of(ALIAS, borrowed + " AND p.kind = 'top_up' LIMIT 1") == "telemetry_charge_posting"


@pytest.mark.parametrize(
    ("constraint", "changed"),
    [
        ("telemetry_charge_once", {}),
        ("telemetry_charge_kind_closed", {"event_kind": "'other'"}),
        ("telemetry_charge_window", {"window_end": "window_start"}),
        ("telemetry_charge_charges_its_source", {"organization_id": "'x'", "billing_account_id": OF_RUNS}),
        ("telemetry_charge_currency_of_account", {"organization_id": "'x'", "currency": "'EUR'"}),
    ],
)
def test_a_charge_of_no_sense_is_refused(constraint: str, changed: dict[str, str]) -> None:
    assert refusal_of(ALIAS, copied(HEAD, "telemetry_charges", **{"charge_id": "'x'", **changed})) == constraint


def test_a_charge_is_of_telemetry_and_its_account_as_well() -> None:
    statement = copied(f"{HEAD}, charge_source", "telemetry_charges", charge_id="'x'", charge_source="'runs'")
    assert refusal_of(ALIAS, statement) == "telemetry_charge_charges_telemetry"
    runs = (
        "INSERT INTO ledger_postings (reference, kind, billing_account_id, charge_source, content_sha256, entry_count)"
        " SELECT 'charge:x', 'charge', billing_account_id, {source}, repeat('a', 64), 2 FROM billing_accounts"
        " WHERE charge_source = 'runs'"
    )
    for source in ("'runs'", "NULL"):
        assert refusal_of(ALIAS, runs.format(source=source)) == "ledger_posting_charges_from_one_source"
    with connections[ALIAS].cursor() as cursor:
        cursor.execute(f"SELECT {OF_RUNS}")
        (account,) = cursor.fetchone()
    with pytest.raises(WrongChargeSource), translated_transaction():
        lock_accounts([account])
        charge([Charge(reference="charge:y", billing_account_id=account, currency="USD", amount_picos=1)])


def test_an_organisation_has_one_account_for_telemetry() -> None:
    second = {
        "tenant_kind": "organization", "tenant_id": "org-1", "currency": "EUR", "price_book_name": "standard",
    }  # fmt: skip
    with pytest.raises(AccountConflict):
        open_account(billing_account_id="second", charge_source=ChargeSource.TELEMETRY, **second)
    assert open_account(billing_account_id="for-runs", charge_source=ChargeSource.RUNS, **second)
    statement = (
        "INSERT INTO billing_accounts (billing_account_id, tenant_id, currency, charge_source, price_book_name)"
        " SELECT 'x', tenant_id, 'EUR', 'telemetry', 'b' FROM billing_accounts WHERE charge_source = 'telemetry'"
    )
    assert refusal_of(ALIAS, statement) == "billing_account_one_for_telemetry"


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", TABLES)
def test_nothing_that_was_charged_changes_or_goes(table: str) -> None:
    changes = (f"UPDATE {table} SET charge_id = 'x'", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE")
    for statement in changes:
        for alias in (ALIAS, "billing.dispatch", "billing.read"):
            assert refusal_of(alias, "SET pgtrigger.ignore = 'all'", statement) == NO_PRIVILEGE
        assert refusal_of("billing.schema", statement).endswith(("_kept", "_truncate"))

import pytest
from django.db import connections

from billing.ledger.accounts import lock_accounts
from billing.ledger.hold import Hold, place_holds
from billing.ledger.post import translated_transaction
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.billing.books import balances, funded_account

pytestmark = [pytest.mark.usefixtures("database")]

SHA = "0" * 64
POSTING = (
    "INSERT INTO ledger_postings (reference, kind, billing_account_id, charge_source, content_sha256, entry_count)"
    " VALUES ('{reference}', '{kind}', 'account-1', {source}, '" + SHA + "', {count})"
)
ENTRY = (
    "INSERT INTO ledger_entries (posting_id, line, ledger_account_id, currency, amount_picos, hold_id)"
    " VALUES ('{reference}', {line}, '{account}', '{currency}', {picos}, {hold})"
)


def posting(*, kind: str = "top_up", source: str = "NULL", count: int = 2, reference: str = "p") -> str:
    return POSTING.format(kind=kind, source=source, count=count, reference=reference)


def entry(  # the columns of an entry
    line: int, picos: int, *, account: str = "wallet:account-1", currency: str = "USD", hold: str = "NULL",
    reference: str = "p",
) -> str:  # fmt: skip
    return ENTRY.format(line=line, picos=picos, account=account, currency=currency, hold=hold, reference=reference)


@pytest.fixture(autouse=True)
def account(database: None) -> str:
    account = funded_account(100, account="account-1")
    funded_account(100, account="account-2")
    with translated_transaction():
        lock_accounts([account])
        place_holds([Hold(hold_id="hold-1", billing_account_id=account, currency="USD", amount_picos=40)])
    return account


FUNDING = "funding:account-1"


@pytest.mark.trap("M4")
@pytest.mark.parametrize("alias", ["billing", "billing.schema"])
@pytest.mark.parametrize(
    ("constraint", "statements"),
    [
        ("ledger_posting_complete", [posting()]),
        ("ledger_posting_complete", [posting(count=3), entry(1, 1), entry(2, -1, account=FUNDING)]),
        ("ledger_posting_balanced", [posting(), entry(1, 1), entry(2, -2, account=FUNDING)]),
        ("ledger_posting_closed", [entry(3, 0, reference="hold:hold-1")]),
        ("ledger_entries_pkey", [entry(1, 0, reference="hold:hold-1")]),
        ("ledger_posting_one_account", [posting(), entry(1, 1), entry(2, -1, account="funding:account-2")]),
        ("ledger_account_never_below_zero", [posting(), entry(1, -61), entry(2, 61, account=FUNDING)]),
        ("ledger_posting_has_two_sides", [posting(count=1)]),
        ("ledger_posting_charges_from_one_source", [posting(kind="gift")]),
        ("ledger_posting_charges_from_one_source", [posting(kind="hold")]),
        ("ledger_posting_charges_from_one_source", [posting(source="'runs'")]),
        ("ledger_posting_charges_from_one_source", [posting(kind="hold", source="'telemetry'")]),
        ("ledger_entry_held_names_its_hold", [posting(), entry(1, 1, account="held:account-1")]),
        ("ledger_entry_held_names_its_hold", [posting(), entry(1, 1, hold="'hold-1'")]),
        ("ledger_entry_line_from_1", [entry(0, 0, reference="hold:hold-1")]),
        (
            "ledger_hold_equals_entries",
            [posting(), entry(1, -1, account="held:account-1", hold="'hold-1'"), entry(2, 1)],
        ),
        ("ledger_entry_currency_of_account", [posting(), entry(1, 1, currency="EUR"),
                                              entry(2, -1, currency="EUR", account=FUNDING)]),
        (
            "ledger_hold_equals_entries",
            ["INSERT INTO ledger_holds (hold_id, billing_account_id, currency, amount_picos, opened_by_id)"
             " VALUES ('h', 'account-1', 'USD', 1, 'top-up:account-1-opening')"],
        ),
        ("ledger_hold_shape", ["UPDATE ledger_holds SET state = 'released'"]),
        ("ledger_hold_state_closed", ["UPDATE ledger_holds SET state = 'lost', closed_at = now(),"
                                      " closed_by_id = 'top-up:account-1-opening'"]),
        ("ledger_hold_equals_entries", ["UPDATE ledger_holds SET state = 'released', closed_at = now(),"
                                        " closed_by_id = 'top-up:account-1-opening'"]),
        ("ledger_account_born_empty",
         ["INSERT INTO ledger_accounts (ledger_account_id, kind, currency, balance_picos, billing_account_id)"
          " VALUES ('wallet:x', 'wallet', 'USD', 5, 'x')"]),
        ("tenant_ref_is_kind_and_id",
         ["INSERT INTO tenants (tenant_ref, tenant_kind, tenant_id) VALUES ('organization:a', 'organization', 'b')"]),
        ("tenant_kind_closed",
         ["INSERT INTO tenants (tenant_ref, tenant_kind, tenant_id) VALUES ('robot:a', 'robot', 'a')"]),
        ("ledger_account_currency_of_account",
         ["INSERT INTO ledger_accounts (ledger_account_id, kind, currency, billing_account_id)"
          " VALUES ('wallet:x', 'wallet', 'USD', 'x')"]),
        ("ledger_account_id_is_kind_and_account",
         ["INSERT INTO ledger_accounts (ledger_account_id, kind, currency, billing_account_id)"
          " VALUES ('wallet:x', 'wallet', 'USD', 'account-1')"]),
    ],
)  # fmt: skip
def test_the_database_refuses(alias: str, constraint: str, statements: list[str]) -> None:
    before = balances("account-1")
    assert refusal_of(alias, *statements) == constraint
    assert balances("account-1") == before


TABLES = ("tenants", "billing_accounts", "ledger_accounts", "ledger_postings", "ledger_entries", "ledger_holds")
UPDATES = {
    "tenants": "tenant_id = 'x'",
    "billing_accounts": "currency = 'EUR'",
    "ledger_accounts": "balance_picos = 1000000",
    "ledger_postings": "kind = 'release'",
    "ledger_entries": "amount_picos = 7",
    "ledger_holds": "amount_picos = 7",
}
GUARDS = {
    "tenants": "tenant",
    "billing_accounts": "billing_account",
    "ledger_accounts": "ledger_account",
    "ledger_postings": "ledger_posting",
    "ledger_entries": "ledger_entry",
    "ledger_holds": "ledger_hold",
}


@pytest.mark.trap("D30")
@pytest.mark.parametrize("alias", ["billing", "billing.dispatch", "billing.read"])
@pytest.mark.parametrize("table", TABLES)
def test_no_login_role_may_change_delete_or_truncate(alias: str, table: str) -> None:
    for statement in (f"UPDATE {table} SET {UPDATES[table]}", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
        assert refusal_of(alias, "SET pgtrigger.ignore = 'all'", statement) == NO_PRIVILEGE


@pytest.mark.trap("D30")
@pytest.mark.parametrize("table", TABLES)
def test_the_guards_hold_for_the_role_that_owns_the_tables(table: str) -> None:
    guard = GUARDS[table]
    ignore = "SET pgtrigger.ignore = 'all'"
    assert refusal_of("billing.schema", ignore, f"TRUNCATE {table} CASCADE").endswith("_truncate")
    deleted = refusal_of("billing.schema", ignore, f"DELETE FROM {table}")
    assert deleted in {f"{guard}_delete", f"{guard}_kept"}
    if table != "ledger_accounts":
        changed = refusal_of("billing.schema", ignore, f"UPDATE {table} SET {UPDATES[table]}")
        assert changed in {f"{guard}_kept", f"{guard}_frozen", f"{guard}_ends_once"}


def test_the_owner_may_change_a_label_and_nothing_else_of_an_account() -> None:
    with connections["billing"].cursor() as cursor:
        cursor.execute("UPDATE billing_accounts SET label = 'New name' WHERE billing_account_id = 'account-1'")
        assert cursor.rowcount == 1


def test_an_account_that_is_charged_from_telemetry_takes_no_hold_in_sql() -> None:
    from billing.ledger.models import ChargeSource

    funded_account(10, account="account-3", charge_source=ChargeSource.TELEMETRY)
    statement = posting(kind="hold", source="'runs'").replace("account-1", "account-3")
    assert refusal_of("billing", statement) in {"ledger_posting_charges_its_source", "ledger_posting_complete"}
    held = (
        "INSERT INTO ledger_holds (hold_id, billing_account_id, charge_source, currency, amount_picos, opened_by_id)"
        " VALUES ('h', 'account-3', '{source}', 'USD', 0, 'top-up:account-3-opening')"
    )
    assert refusal_of("billing", held.format(source="runs")) == "ledger_hold_charges_its_source"
    assert refusal_of("billing", held.format(source="telemetry")) == "ledger_hold_charges_runs"

"""Charges of telemetry at billing, and what consumption has down about them (T13).

Prices are computed here from the stored contents and price books alone. Consumption commits what is owed before billing
posts it, and billing posts it before consumption writes the answer down: so a posted charge is looked for at billing,
and billing's in consumption.
"""

import json
from typing import Any

from pydantic.alias_generators import to_camel

from config.verify.check import Check, Row, Snapshot, Tally, snapshots
from config.verify.content import content_problem
from config.verify.places import BILLING, TELEMETRY
from metering.consumption.contracts import IDENTITY as NAMES
from metering.consumption.contracts import TelemetryCharge, UsedQuantity, charge_id
from outbox.contracts.contract import timestamp

GENERATIONS = """
SELECT g.charge_id, g.generation, g.digest, g.candidate, g.price_book_id, g.amount_picos, g.delta_picos,
       coalesce(before.amount_picos, 0), g.posting_id, p.kind, coalesce((
           SELECT sum(e.amount_picos) FROM ledger_entries e
            WHERE e.posting_id = g.posting_id AND e.ledger_account_id = 'revenue:' || c.billing_account_id), 0)
  FROM telemetry_charge_generations g
  JOIN telemetry_charges c ON c.charge_id = g.charge_id
  LEFT JOIN telemetry_charge_generations before
    ON before.charge_id = g.charge_id AND before.generation = g.previous_generation
  LEFT JOIN ledger_postings p ON p.reference = g.posting_id
"""
BOOKS = "SELECT price_book_ref, candidate FROM price_books WHERE price_book_ref = ANY(%s)"
WITHOUT_GENERATION = """
SELECT p.reference FROM ledger_postings p LEFT JOIN telemetry_charge_generations g ON g.posting_id = p.reference
 WHERE p.kind = 'charge' AND g.charge_id IS NULL
"""

QUANTITIES = {
    "llm.cached_input_tokens": "cached_input_tokens",
    "llm.input_tokens": "input_tokens",
    "llm.output_tokens": "output_tokens",
    "resource.samples": "samples",
    "resource.samples_above_threshold": "samples_above_threshold",
}
IDENTITY = "kind, cluster_id, window_start, organization_id, applies_to"
POSTED = f"""
SELECT {IDENTITY}, window_end, generation, state, {", ".join(QUANTITIES.values())}, posted_generation, posted_sha256,
       billing_account_id, currency, amount_picos
  FROM consumption_charges WHERE posted_generation IS NOT NULL
"""
AT_BILLING = """
SELECT g.charge_id, g.generation, g.digest, c.billing_account_id, c.currency, g.amount_picos
  FROM telemetry_charge_generations g JOIN telemetry_charges c ON c.charge_id = g.charge_id
 WHERE g.charge_id = ANY(%s)
"""
LATEST = """
SELECT c.charge_id, c.event_kind, c.cluster_id, c.window_start, c.organization_id, c.applies_to, max(g.generation)
  FROM telemetry_charges c JOIN telemetry_charge_generations g ON g.charge_id = c.charge_id GROUP BY c.charge_id
"""
OWED_FOR = f"""
SELECT {IDENTITY}, generation FROM consumption_charges
 WHERE ({IDENTITY}) IN (SELECT * FROM unnest(%s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::text[]))
"""


def charges_recompute() -> Tally:
    """Prove every generation of every charge: its content, its price, its difference, its posting."""
    tally = Tally()
    with snapshots(BILLING[1]) as (billing,):
        for batch in billing.stream(GENERATIONS):
            tally.examined += len(batch)
            prices = _prices(billing, {row[4] for row in batch})
            for row in batch:
                if problem := _charge_problem(row, prices[row[4]]):
                    tally.found("billing", f"{row[0]}, generation {row[1]}", problem)
        for (reference,) in (row for batch in billing.stream(WITHOUT_GENERATION) for row in batch):
            tally.found("billing", reference, "it charges an account, and no charge says for what")
    return tally


def _prices(billing: Snapshot, books: set[str]) -> dict[str, dict[tuple[str, str | None], int]]:
    found = {book: json.loads(text)["prices"] for book, text in billing.rows(BOOKS, [sorted(books)])}
    return {
        book: {
            (price["chargeDimensionKey"], price.get("appliesTo")): price["microsPerMillionUnits"] for price in prices
        }
        for book, prices in found.items()
    }


def _charge_problem(row: Row, prices: dict[tuple[str, str | None], int]) -> str | None:
    identity, generation, digest, text, _, amount, delta, before, posting, kind, to_revenue = row
    if problem := content_problem(TelemetryCharge, ref=f"{identity}/{generation}", digest=digest, candidate=text):
        return f"it {problem}"
    said: dict[str, Any] = json.loads(text)
    if charge_id(**{name: said[to_camel(name)] for name in NAMES}) != identity or said["generation"] != generation:
        return "it says that it is another charge or generation"
    due = 0
    for used in said["quantities"]:
        dimension = used["chargeDimensionKey"]
        price = prices.get((dimension, said["appliesTo"]), prices.get((dimension, None)))
        if price is None:
            return f"its price book has no price for {dimension}"
        due += int(used["quantity"]) * price
    if amount != due:
        return f"it costs {due} by its price book, and {amount} is charged"
    if delta != amount - before:
        return f"it differs from the generation before by {amount - before}, and says {delta}"
    moved = to_revenue if kind == "charge" else 0
    return (
        None if (posting is not None) == (delta != 0) and moved == delta else f"{moved} was moved for it, not {delta}"
    )


def posted_charges_agree() -> Tally:
    """Look up at billing what consumption has down as posted, and in consumption what billing posted."""
    tally = Tally()
    with snapshots(TELEMETRY[1], BILLING[1]) as (telemetry, billing):
        for batch in telemetry.stream(POSTED):
            tally.examined += len(batch)
            _compare_posted([_named(row) for row in batch], billing, tally)
    with snapshots(BILLING[1], TELEMETRY[1]) as (billing, telemetry):
        for batch in billing.stream(LATEST):
            _compare_latest(batch, telemetry, tally)
    return tally


def _named(row: Row) -> dict[str, Any]:
    names = f"{IDENTITY}, window_end, generation, state, {', '.join(QUANTITIES.values())}, posted_generation,"
    names += " posted_sha256, billing_account_id, currency, amount_picos"
    return dict(zip(names.split(", "), row, strict=True))


def _identity_of(row: dict[str, Any]) -> dict[str, str]:
    return {
        "event_kind": row["kind"],
        "cluster_id": row["cluster_id"],
        "window_start": timestamp(row["window_start"]),
        "organization_id": row["organization_id"],
        "applies_to": row["applies_to"],
    }


def _compare_posted(rows: list[dict[str, Any]], billing: Snapshot, tally: Tally) -> None:
    named = [(charge_id(**_identity_of(row)), row) for row in rows]
    stands = {(row[0], row[1]): row[2:] for row in billing.rows(AT_BILLING, [[identity for identity, _ in named]])}
    for identity, row in named:
        told = (row["posted_sha256"], row["billing_account_id"], row["currency"], row["amount_picos"])
        found = stands.get((identity, row["posted_generation"]))
        if found != told:
            problem = "billing has not posted it" if found is None else "billing posted something else"
            tally.found("telemetry", f"{identity}, generation {row['posted_generation']}", problem)
        elif row["state"] == "posted" and _content_of(row).reference.digest != row["posted_sha256"]:
            tally.found("telemetry", identity, "it is posted, and not as what is owed now")


def _content_of(row: dict[str, Any]) -> TelemetryCharge:
    used = [
        UsedQuantity(charge_dimension_key=dimension, quantity=str(int(row[column])))
        for dimension, column in sorted(QUANTITIES.items())
        if row[column]
    ]
    return TelemetryCharge.of(
        **_identity_of(row),
        window_end=timestamp(row["window_end"]),
        generation=row["generation"],
        quantities=tuple(used),
    )


def _compare_latest(batch: list[Row], telemetry: Snapshot, tally: Tally) -> None:
    columns = [list(column) for column in zip(*batch, strict=True)]
    owed = {row[:5]: row[5] for row in telemetry.rows(OWED_FOR, columns[1:6])}
    for identity, *key, generation in batch:
        if owed.get(tuple(key), 0) < generation:
            tally.found(
                "billing", f"{identity}, generation {generation}", "it is posted, and consumption never owed it"
            )


CHECKS = (
    Check(
        "telemetry_charge",
        "Every charge of telemetry recomputes: its content, quantity times price, its difference and its posting.",
        charges_recompute,
    ),
    Check(
        "consumption_posted",
        "What consumption has down as posted is what billing posted, and billing posted only what is owed.",
        posted_charges_agree,
    ),
)

"""Each way to break an invariant of telemetry, as in `breakage`."""

BROKEN: list[tuple[str, str, str, str]] = [
    (
        "telemetry_accepted",
        "an accepted event that is neither stored nor a duplicate nor a conflict",
        "telemetry",
        "UPDATE telemetry_tallies SET accepted = accepted + 1, stored = stored + 1 WHERE cluster_id = '8'",
    ),
    (
        "telemetry_accepted",
        "a conflict of which nothing is kept",
        "telemetry",
        "DELETE FROM telemetry_conflicts WHERE reason = 'content'",
    ),
    (
        "consumption_line",
        "a line that counts an event too many",
        "telemetry",
        "UPDATE consumption_lines SET events = events + 1 WHERE kind = 'llm_billing' AND organization_id IS NOT NULL",
    ),
    (
        "consumption_line",
        "an orphan with other amounts than its events",
        "telemetry",
        "UPDATE consumption_lines SET prompt_tokens = prompt_tokens + 1 WHERE orphan_reason IS NOT NULL",
    ),
    (
        "consumption_line",
        "a conflicting event that is counted",
        "telemetry",
        "DELETE FROM telemetry_conflicts WHERE reason = 'two_times'",
    ),
    (
        "consumption_line",
        "an event whose window nobody marked",
        "telemetry",
        "DELETE FROM consumption_windows_dirty WHERE marked_generation > cleared_generation",
    ),
    (
        "consumption_owed",
        "a refused charge over more than was used",
        "telemetry",
        "UPDATE consumption_charges SET samples = samples + 1 WHERE state = 'refused'",
    ),
    (
        "consumption_owed",
        "usage that nobody owes",
        "telemetry",
        "DELETE FROM consumption_charges WHERE state = 'not_charged'",
    ),
    (
        "consumption_payer",
        "a key of another organisation than it is charged to",
        "metering",
        "UPDATE managed_keys SET organization_id = 'org-thief' WHERE manager_key_id = '101'",
    ),
    (
        "telemetry_charge",
        "a charge whose content does not recompute",
        "billing",
        "UPDATE telemetry_charge_generations SET candidate = candidate || ' '",
    ),
    (
        "telemetry_charge",
        "a difference that is none",
        "billing",
        "UPDATE telemetry_charge_generations SET delta_picos = delta_picos + 1 WHERE generation = 2",
    ),
    (
        "telemetry_charge",
        "a posting that charges for nothing",
        "billing",
        "UPDATE ledger_postings SET kind = 'charge', charge_source = 'telemetry' WHERE kind = 'top_up'",
    ),
    (
        "telemetry_charge",
        "another price book than the amount is of",
        "billing",
        "UPDATE price_books SET candidate = replace(candidate, '150000', '150001')",
    ),
    (
        "consumption_posted",
        "another amount than billing posted",
        "telemetry",
        "UPDATE consumption_charges SET amount_picos = amount_picos + 1 WHERE state = 'posted'",
    ),
    (
        "consumption_posted",
        "other contents than billing posted",
        "telemetry",
        "UPDATE consumption_charges SET posted_sha256 = repeat('0', 64) WHERE state = 'posted'",
    ),
    (
        "consumption_posted",
        "a posted charge that consumption never owed",
        "telemetry",
        "UPDATE consumption_charges SET generation = 1, state = 'due', ask_after = now(), posted_generation = NULL,"
        " posted_sha256 = NULL, billing_account_id = NULL, price_book_ref = NULL, currency = NULL, amount_picos = NULL"
        " WHERE state = 'posted'",
    ),
]

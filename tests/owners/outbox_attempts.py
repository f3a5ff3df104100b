"""Attempts to break each CHECK, UNIQUE and guard of the outbox through SQL: what is set up, what is tried, who refuses.

Statements are SQL texts over one committed admission of core. `$event` is its run event, `$wallet` its wallet event,
`$new` and `$attempt`, `$again` are fresh ids. Everything runs in one transaction that is rolled back.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from outbox.contracts.delivery_set import DeliverySetDefinition
from outbox.contracts.first_release import FIRST_RELEASE_VERSION, first_release
from outbox.models import DeliverySetVersion, OutboxDelivery, OutboxEvent
from outbox.models import delivery as delivery_model
from outbox.models import delivery_set as delivery_set_model
from outbox.models import event as event_model


@dataclass(frozen=True, slots=True)
class Attempt:
    """`broken` must be refused by `guard`; `said` is the name in the error where one guard has several."""

    guard: str
    broken: str
    setup: str = ""
    said: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The constraint names that the error may carry."""
        return self.said or (self.guard,)


OTHER = DeliverySetDefinition.define(version="test-other", members=first_release().members)
"""A second definition, registered inside the transaction only."""

CLAIM = """
UPDATE outbox_deliveries SET status = 'leased', lease_owner = 'w', lease_token = lease_token + 1,
       lease_expires_at = now() + interval '{lease}', current_attempt_id = '{attempt}',
       attempt_count = attempt_count + 1, last_attempt_at = now() WHERE event_id = '$event';
"""
START = """
INSERT INTO outbox_delivery_attempt_starts (attempt_id, event_id, destination, attempt_no, lease_token, lease_owner)
VALUES ('{attempt}', '$event', 'core_operations', {number}, {number}, 'w');
"""
FINISH = """
INSERT INTO outbox_delivery_attempt_finishes
       (attempt_id, outcome, retry_disposition, retry_class, normalized_error_code, sanitized_error_ref)
VALUES ('$attempt', {values});
"""
CLAIMED = CLAIM.format(lease="30 seconds", attempt="$attempt") + START.format(attempt="$attempt", number=1)
EXPIRED = CLAIM.format(lease="0 seconds", attempt="$attempt") + START.format(attempt="$attempt", number=1)
RELEASE = "lease_owner = NULL, lease_expires_at = NULL"
RETRIED = (
    CLAIMED
    + f"UPDATE outbox_deliveries SET status = 'pending', {RELEASE} WHERE event_id = '$event';"
    + FINISH.format(values="'retryable', 'retry', 'transient', 'down', NULL")
)
QUARANTINE_ROW = """
INSERT INTO outbox_quarantine (event_id, destination, attempt_id, event_type, schema_version, reason,
       event_envelope_digest_algorithm_version, event_envelope_sha256)
SELECT event_id, 'core_operations', '{attempt}', event_type, schema_version, 'wrong',
       event_envelope_digest_algorithm_version, event_envelope_sha256 FROM outbox_events WHERE event_id = '$event';
"""
IN_QUARANTINE = (
    CLAIMED
    + f"UPDATE outbox_deliveries SET status = 'quarantined', {RELEASE} WHERE event_id = '$event';"
    + FINISH.format(values="'non_retryable', 'quarantine', NULL, 'wrong', NULL")
)
QUARANTINED = IN_QUARANTINE + QUARANTINE_ROW.format(attempt="$attempt")
REGISTERED = f"""
INSERT INTO delivery_set_versions (delivery_set_version, delivery_set_definition_schema_version,
       delivery_set_definition_digest_algorithm_version, delivery_set_definition_digest, definition, source_release,
       status)
VALUES ('{OTHER.delivery_set_version}', '1', 'jcs-sha256-v1', '{OTHER.delivery_set_definition_digest}',
        $q${OTHER.canonical().decode()}$q$, 'test', 'registered');
"""
WITH_ROWS = f"""{REGISTERED}
INSERT INTO delivery_set_events (event_type, schema_version, delivery_set_version)
SELECT event_type, schema_version, '{OTHER.delivery_set_version}'
  FROM delivery_set_events WHERE delivery_set_version = '{FIRST_RELEASE_VERSION}';
INSERT INTO delivery_set_members (delivery_set_version, event_type, schema_version, destination, consumer_name,
       mandatory, expected_receipt_type, expected_receipt_schema_version, projection_target_state, projection_name,
       projection_version)
SELECT '{OTHER.delivery_set_version}', event_type, schema_version, destination, consumer_name, mandatory,
       expected_receipt_type, expected_receipt_schema_version, projection_target_state, projection_name,
       projection_version
  FROM delivery_set_members WHERE delivery_set_version = '{FIRST_RELEASE_VERSION}';
"""


def columns_of(model: type[OutboxEvent] | type[OutboxDelivery]) -> list[str]:
    """The columns that an INSERT names."""
    return [field.column for field in model._meta.concrete_fields if not getattr(field, "generated", False)]


def copied_event(*, envelope: str = "", **changes: str) -> str:
    """INSERT of a true copy of the run event under `$new`, of another aggregate; `changes` are SQL by column."""
    text = "replace(replace(event_envelope, '$event', '$new'), aggregate_id, aggregate_id || ':2')"
    values = {
        "event_id": "'$new'",
        "aggregate_id": "aggregate_id || ':2'",
        "event_envelope": "x.text",
        "event_envelope_sha256": "encode(sha256(convert_to(x.text, 'UTF8')), 'hex')",
        **changes,
    }
    columns = columns_of(OutboxEvent)
    return (
        f"INSERT INTO outbox_events ({', '.join(columns)})"
        f" SELECT {', '.join(values.get(column, f'e.{column}') for column in columns)}"
        f" FROM outbox_events e CROSS JOIN LATERAL (SELECT {envelope or text} AS text) x WHERE e.event_id = '$event';"
    )


def copied_delivery(**changes: str) -> str:
    """INSERT of a copy of the run event's delivery for `$new`; `changes` are SQL by column."""
    values = {"event_id": "'$new'", **changes}
    columns = columns_of(OutboxDelivery)
    return (
        f"INSERT INTO outbox_deliveries ({', '.join(columns)})"
        f" SELECT {', '.join(values.get(column, column) for column in columns)}"
        " FROM outbox_deliveries WHERE event_id = '$event';"
    )


ACK = {
    "status": "'acknowledged'",
    "delivered_at": "now()",
    "ack_consumer_name": "consumer_name",
    "ack_receipt_type": "expected_receipt_type",
    "ack_receipt_ref": "'r'",
    "ack_receipt_schema_version": "expected_receipt_schema_version",
    "ack_receipt_digest_algorithm_version": "'jcs-sha256-v1'",
    "ack_receipt_digest": "repeat('a', 64)",
    "ack_event_envelope_digest_algorithm_version": "'jcs-sha256-v1'",
    "ack_event_envelope_sha256": "repeat('a', 64)",
}


def kept(guard: str, table: str, column: str, setup: str = "") -> Iterator[Attempt]:
    """UPDATE, DELETE and TRUNCATE of an append-only table."""
    yield Attempt(f"{guard}_kept", f"UPDATE {table} SET {column} = {column}", setup)
    yield Attempt(f"{guard}_kept", f"DELETE FROM {table}", setup)
    yield Attempt(f"{guard}_truncate", f"TRUNCATE {table} CASCADE", setup)


def attempt_starts() -> Iterator[Attempt]:
    """`outbox_delivery_attempt_starts`."""
    start = START.format(attempt="$again", number=1)
    yield Attempt("outbox_attempt_start_token", start, CLAIMED)
    yield Attempt("outbox_attempt_start_legal", START.format(attempt="$attempt", number=1))
    other = CLAIM.format(lease="30 seconds", attempt="$attempt")
    yield Attempt("outbox_attempt_start_legal", start, other)
    yield Attempt("outbox_attempt_start_legal", START.format(attempt="$attempt", number=2), other)
    unfinished = EXPIRED + CLAIM.format(lease="30 seconds", attempt="$again")
    yield Attempt(
        "outbox_attempt_start_legal", START.format(attempt="$again", number=2), unfinished,
        ("outbox_attempt_start_after_finish",),
    )  # fmt: skip
    yield from kept("outbox_attempt_start", "outbox_delivery_attempt_starts", "lease_owner", CLAIMED)


def attempt_finishes() -> Iterator[Attempt]:
    """`outbox_delivery_attempt_finishes`."""
    for values in (
        "'acknowledged', 'retry', NULL, NULL, NULL",
        "'acknowledged', 'complete', NULL, 'code', NULL",
        "'retryable', 'complete', 'transient', 'code', NULL",
        "'retryable', 'retry', NULL, 'code', NULL",
        "'retryable', 'retry', 'transient', NULL, NULL",
        "'non_retryable', 'retry', NULL, 'code', NULL",
        "'non_retryable', 'quarantine', NULL, NULL, NULL",
        "'lease_expired_unknown', 'quarantine', NULL, NULL, NULL",
        "'skipped', 'complete', NULL, NULL, NULL",
    ):
        yield Attempt("outbox_attempt_finish_closed", FINISH.format(values=values), CLAIMED)
    yield Attempt(
        "outbox_attempt_finish_error_bounded",
        FINISH.format(values="'retryable', 'retry', 'transient', 'code', repeat('x', 1001)"),
        CLAIMED,
    )
    for values in (
        "'acknowledged', 'complete', NULL, NULL, NULL",
        "'retryable', 'retry', 'transient', 'code', NULL",
        "'non_retryable', 'quarantine', NULL, 'code', NULL",
        "'lease_expired_unknown', 'retry', NULL, NULL, NULL",
    ):
        yield Attempt("outbox_attempt_finish_legal", FINISH.format(values=values), CLAIMED)
    second = FINISH.format(values="'retryable', 'retry', 'transient', 'code', NULL")
    yield Attempt("outbox_delivery_attempt_finishes_pkey", second, RETRIED)
    yield from kept(
        "outbox_attempt_finish",
        "outbox_delivery_attempt_finishes",
        "outcome",
        f"{RETRIED} SET CONSTRAINTS ALL IMMEDIATE;",
    )


def events() -> Iterator[Attempt]:
    """`outbox_events`."""
    yield Attempt("outbox_event_digest_algorithm", copied_event(event_envelope_digest_algorithm_version="'jcs-sha512'"))
    zero = "replace(replace(event_envelope, '$event', '$new'), '\"aggregateRevision\":1,', '\"aggregateRevision\":0,')"
    yield Attempt(
        "outbox_event_revision_from_1",
        copied_event(envelope=zero, aggregate_id="aggregate_id", aggregate_revision="0"),
    )
    published = "UPDATE outbox_events SET published_at = {value} WHERE event_id = '$event';"
    yield Attempt(
        "outbox_event_published_after_created", published.format(value="created_at - interval '1 second'"),
        said=("outbox_event_published_after_created", "outbox_event_published_when_acknowledged"),
    )  # fmt: skip
    yield Attempt(
        "outbox_event_one_per_fact",
        copied_event(envelope="replace(event_envelope, '$event', '$new')", aggregate_id="aggregate_id"),
    )
    for said, statement in (
        ("outbox_event_digest", copied_event(event_envelope_sha256="repeat('0', 64)")),
        ("outbox_event_digest", copied_event(event_envelope="x.text || ' '")),
        ("outbox_event_columns", copied_event(tenant_id="'other'")),
        ("outbox_event_columns", copied_event(occurred_at="e.occurred_at + interval '1 microsecond'")),
        ("outbox_event_columns", copied_event(aggregate_revision="2")),
        (
            "outbox_event_columns",
            copied_event(
                envelope="replace(replace(replace(event_envelope, '$event', '$new'), aggregate_id,"
                " aggregate_id || ':2'), '\"payload\":{', '\"payload\":7,\"payload\":{')"
            ),
        ),
        ("outbox_event_published", copied_event(published_at="now()")),
    ):
        yield Attempt("outbox_event_envelope", statement, said=(said,))
    yield Attempt("outbox_event_mandatory_set", copied_event())
    yield Attempt(
        "outbox_event_mandatory_set",
        copied_event(delivery_set_definition_digest="repeat('f', 64)") + copied_delivery(),
        said=("outbox_event_definition",),
    )
    for column in event_model.FROZEN:
        yield Attempt("outbox_event_frozen", f"UPDATE outbox_events SET {changed(OutboxEvent, column)}")
    yield Attempt("outbox_event_published_once", published.format(value="NULL"))
    yield Attempt(
        "outbox_event_published_complete",
        "UPDATE outbox_events SET published_at = clock_timestamp() WHERE event_id = '$event'",
    )
    yield Attempt("outbox_event_delete", "DELETE FROM outbox_events")
    yield Attempt("outbox_event_truncate", "TRUNCATE outbox_events CASCADE")


def changed(model: type[OutboxEvent] | type[OutboxDelivery] | type[DeliverySetVersion], column: str) -> str:
    """`column = another value` in SQL."""
    field = next(field for field in model._meta.concrete_fields if field.column == column)
    kind = field.get_internal_type()
    value = {
        "UUIDField": "gen_random_uuid()",
        "ForeignKey": "gen_random_uuid()",
        "DateTimeField": f"{column} - interval '1 hour'",
        "BooleanField": f"NOT {column}",
        "BigIntegerField": f"{column} + 1",
        "IntegerField": f"{column} + 1",
    }.get(kind, f"coalesce({column}, '') || 'x'")
    return f"{column} = {value}"


def deliveries() -> Iterator[Attempt]:
    """`outbox_deliveries`."""
    table = "UPDATE outbox_deliveries SET {change} WHERE event_id = '$event';"
    new = copied_event()
    yield Attempt("outbox_delivery_status_closed", copied_delivery(status="'skipped'"), new)
    for changes in ({"lease_owner": "'w'"}, {"lease_expires_at": "now()"}, {"status": "'leased'"}):
        yield Attempt("outbox_delivery_lease_shape", copied_delivery(**changes), new)
    for changes in ({"delivered_at": "now()"}, {"ack_receipt_ref": "'r'"}, {"status": "'acknowledged'"}):
        yield Attempt("outbox_delivery_ack_shape", copied_delivery(**changes), new)
    for column in ("ack_consumer_name", "ack_receipt_type", "ack_receipt_schema_version"):
        yield Attempt("outbox_delivery_ack_is_expected", copied_delivery(**{**ACK, column: "'other'"}), new)
    for column in ("ack_receipt_digest", "ack_event_envelope_sha256"):
        yield Attempt("outbox_delivery_ack_digests", copied_delivery(**{**ACK, column: "repeat('Z', 64)"}), new)
    for changes in ({"attempt_count": "1"}, {"attempt_count": "-1"}):
        yield Attempt("outbox_delivery_counts", copied_delivery(**changes), new)
    for changes in (
        {"consumer_name": "'other'"},
        {"destination": "'elsewhere'"},
        {"mandatory": "false"},
        {"expected_receipt_type": "'Other'"},
        {"required_projection_version": "NULL"},
        {"lease_token": "1"},
        {"event_type": "'wallet.reserved@2.0'"},
        ACK,
    ):
        yield Attempt("outbox_delivery_member", copied_delivery(**changes), new)
    for column in delivery_model.FROZEN:
        yield Attempt("outbox_delivery_frozen", table.format(change=changed(OutboxDelivery, column)))
    acknowledged = ", ".join(f"{column} = {value}" for column, value in ACK.items())
    next_claim = "lease_token = lease_token + 1, attempt_count = attempt_count + 1, current_attempt_id = '$again'"
    for setup, change in (
        ("", "status = 'pending'"),
        ("", acknowledged),
        ("", "status = 'quarantined'"),
        ("", "lease_token = lease_token + 1"),
        ("", "available_at = now()"),
        (CLAIMED, f"{next_claim}, lease_owner = 'thief'"),
        (CLAIMED, "lease_expires_at = lease_expires_at - interval '1 second'"),
        (CLAIMED, "lease_owner = 'thief'"),
        (CLAIMED, "current_attempt_id = '$again'"),
        (CLAIMED, f"{acknowledged}, {RELEASE}, lease_token = lease_token + 1"),
        (CLAIMED, f"status = 'pending', {RELEASE}, attempt_count = 0"),
        (QUARANTINED, "status = 'pending'"),
        (QUARANTINED, f"{acknowledged}"),
        (f"{CLAIMED} {table.format(change=f'{acknowledged}, {RELEASE}')}", "last_error_code = 'x'"),
        (RETRIED, "status = 'leased', lease_owner = 'w', lease_expires_at = now()"),
    ):
        yield Attempt("outbox_delivery_transition", table.format(change=change), setup)
    yield Attempt("outbox_delivery_quarantine_visible", "SELECT 1", IN_QUARANTINE)
    yield Attempt("outbox_delivery_delete", "DELETE FROM outbox_deliveries")
    yield Attempt("outbox_delivery_truncate", "TRUNCATE outbox_deliveries CASCADE")


def delivery_sets() -> Iterator[Attempt]:
    """`delivery_set_versions`, `delivery_set_events`, `delivery_set_members`."""
    table = "UPDATE delivery_set_versions SET {change} WHERE delivery_set_version = '{version}';"
    first = FIRST_RELEASE_VERSION
    yield Attempt("delivery_set_status_closed", table.format(change="status = 'draft'", version=first))
    registered = WITH_ROWS + "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED;"
    for change in ("activated_at = now()", "status = 'active'", "status = 'retired'"):
        yield Attempt("delivery_set_activated_when_used", table.format(change=change, version="test-other"), registered)
    active = table.format(change="status = 'active', activated_at = now()", version="test-other")
    yield Attempt("delivery_set_one_active", active, registered)
    yield Attempt(
        "delivery_set_four_tuple", REGISTERED, registered, ("delivery_set_versions_pkey", "delivery_set_four_tuple")
    )
    yield Attempt("delivery_set_rows", REGISTERED)
    yield Attempt(
        "delivery_set_rows",
        "INSERT INTO delivery_set_events (delivery_set_version, event_type, schema_version)"
        f" VALUES ('{first}', 'made.up@1', '1')",
    )
    member = (
        "INSERT INTO delivery_set_members (delivery_set_version, event_type, schema_version, destination,"
        " consumer_name, mandatory, expected_receipt_type, expected_receipt_schema_version, projection_target_state,"
        f" projection_name, projection_version) VALUES ('{first}', 'made.up@1', '1', {{values}})"
    )
    yield Attempt(
        "delivery_set_rows", member.format(values="'elsewhere', 'c', true, 'R', '1', 'not_applicable', NULL, NULL")
    )
    for values in (
        "'core_operations', 'c', true, 'R', '1', 'not_applicable', NULL, NULL",
        "'core_operations', 'c', true, 'R', '1', 'required', NULL, '1'",
        "'elsewhere', 'c', true, 'R', '1', 'required', 'p', '1'",
        "'elsewhere', 'c', true, 'R', '1', 'not_applicable', 'p', NULL",
        "'elsewhere', 'c', true, 'R', '1', 'perhaps', NULL, NULL",
    ):
        yield Attempt("delivery_set_member_projection_target", member.format(values=values))
    for old, new in (
        (OTHER.delivery_set_definition_digest, "0" * 64),
        ('"memberCount":14', '"memberCount":13'),
        ("'1', 'jcs-sha256-v1'", "'2', 'jcs-sha256-v1'"),
        ("'1', 'jcs-sha256-v1'", "'1', 'md5'"),
        ("VALUES ('test-other'", "VALUES ('test-another'"),
    ):
        assert old in REGISTERED
        yield Attempt("delivery_set_digest", REGISTERED.replace(old, new, 1))
    for column in delivery_set_model.FROZEN:
        change = changed(DeliverySetVersion, column)
        yield Attempt("delivery_set_frozen", table.format(change=change, version=first))
    retired = table.format(change="status = 'retired'", version=first)
    yield Attempt(
        "delivery_set_never_returns", table.format(change="status = 'registered', activated_at = NULL", version=first)
    )
    yield Attempt("delivery_set_never_returns", table.format(change="status = 'active'", version=first), retired)
    yield Attempt("delivery_set_never_returns", table.format(change="activated_at = now()", version=first))
    yield Attempt("delivery_set_delete", "DELETE FROM delivery_set_versions")
    yield Attempt("delivery_set_truncate", "TRUNCATE delivery_set_versions CASCADE")
    yield from kept("delivery_set_event", "delivery_set_events", "event_type")
    yield from kept("delivery_set_member", "delivery_set_members", "consumer_name")


def quarantine() -> Iterator[Attempt]:
    """`outbox_quarantine`."""
    yield Attempt("outbox_quarantine_legal", QUARANTINE_ROW.format(attempt="$attempt"))
    yield Attempt("outbox_quarantine_legal", QUARANTINE_ROW.format(attempt="$attempt"), CLAIMED)
    yield Attempt("outbox_quarantine_legal", QUARANTINE_ROW.format(attempt="$again"), IN_QUARANTINE)
    forged = QUARANTINE_ROW.format(attempt="$attempt").replace(
        "event_envelope_digest_algorithm_version, event_envelope_sha256 FROM",
        "event_envelope_digest_algorithm_version, repeat('0', 64) FROM",
    )
    yield Attempt("outbox_quarantine_legal", forged, IN_QUARANTINE)
    yield Attempt("outbox_quarantine_attempt_id_key", QUARANTINE_ROW.format(attempt="$attempt"), QUARANTINED, (
        "outbox_quarantine_attempt_id_key", "outbox_quarantine_pkey",
    ))  # fmt: skip
    yield from kept("outbox_quarantine", "outbox_quarantine", "reason", QUARANTINED)


def every_attempt() -> list[Attempt]:
    """All of them."""
    return [
        *attempt_starts(), *attempt_finishes(), *events(), *deliveries(), *delivery_sets(), *quarantine(),
    ]  # fmt: skip

"""The inbox transaction of the bare loop: the projector's own statements, filled from plain dictionaries."""

import hashlib
from collections.abc import Sequence
from typing import Any

import psycopg

from operations.projector import statements as inbox
from operations.timelines import statements as timelines

Row = dict[str, Any]
NAME, VERSION = "core_operations", "1"


class Projection:
    """Applies batches of admission events on one connection of the owner role."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        from outbox.contracts.first_release import PROJECTION_NAME, PROJECTION_VERSION, first_release

        definition = first_release().reference
        self.connection = connection
        self.name, self.version = PROJECTION_NAME, PROJECTION_VERSION
        self.common = {
            "consumer": "operations_projector",
            "producer": "core",
            "name": self.name,
            "version": self.version,
            "algorithm": "jcs-sha256-v1",
            "set_version": definition.ref,
            "set_schema_version": definition.schema_version,
            "set_algorithm": definition.digest_algorithm_version,
            "set_digest": definition.digest,
        }

    def ref(self, event_id: str) -> str:
        """The reference of an event's receipt."""
        return f"{self.name}:{self.version}:{event_id}"

    def apply(self, events: Sequence[Row]) -> dict[str, str]:
        """Apply a batch in one transaction; the digest of each event's receipt."""
        with self.connection.transaction():
            self._run(inbox.OPEN)
            self._run(inbox.STORED_RECEIPTS, event_ids=_words(event["eventId"] for event in events))
            existing = self._aggregates(events)
            digests = self._receipts(events)
            self._project(events, existing)
            if existing:
                moved = sorted(existing & {event["aggregateId"] for event in events})
                if moved:
                    self._run(
                        inbox.ADVANCE_AGGREGATES, aggregate_ids=_texts(moved), revisions=_words("1" for _ in moved)
                    )
            last = max(event["eventId"] for event in events)
            self._run(inbox.SUMMARISE_BUILD, applied=len(events), last_event_id=last)
        return digests

    def _run(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(statement, self.common | values)
        return cursor.fetchall() if cursor.description else []

    def _aggregates(self, events: Sequence[Row]) -> set[str]:
        revisions = {event["payload"]["runId"]: "0" for event in events}
        revisions |= {event["aggregateId"]: "1" for event in events}
        names = sorted(revisions)
        created = self._run(
            inbox.CREATE_AGGREGATES,
            aggregate_ids=_texts(names),
            revisions=_words(revisions[name] for name in names),
            gaps=_words("f" for _ in names),
        )
        existing = set(names) - {name for (name,) in created}
        if existing:
            self._run(inbox.LOCK_AGGREGATES, aggregate_ids=_texts(sorted(existing)))
        return existing

    def _receipts(self, events: Sequence[Row]) -> dict[str, str]:
        digests = {event["eventId"]: self._digest(event) for event in events}
        self._run(
            inbox.STORE_RECEIPTS,
            event_ids=_words(digests),
            event_types=_words(event["eventType"] for event in events),
            schema_versions=_words(event["eventSchemaVersion"] for event in events),
            digests=_words(event["sha256"] for event in events),
            receipt_digests=_words(digests.values()),
        )
        return digests

    def _digest(self, event: Row) -> str:
        own = "operationsProjectionAppliedReceipt"
        return hashlib.sha256(
            (
                '{"consumerName":"operations_projector","destination":"core_operations",'
                f'"eventEnvelopeDigestAlgorithmVersion":"jcs-sha256-v1","eventEnvelopeSha256":"{event["sha256"]}",'
                f'"eventId":"{event["eventId"]}","eventSchemaVersion":"{event["eventSchemaVersion"]}",'
                f'"eventType":"{event["eventType"]}","{own}DigestAlgorithmVersion":"jcs-sha256-v1",'
                f'"{own}SchemaVersion":"1","projectionName":"{self.name}","projectionVersion":"{self.version}"}}'
            ).encode()
        ).hexdigest()

    def _project(self, events: Sequence[Row], existing: set[str]) -> None:
        runs = {event["aggregateId"]: event for event in events if event["eventType"].startswith("run.")}
        wallets = {event["payload"]["runId"]: event for event in events if event["eventType"].startswith("wallet.")}
        waiting = self._waiting(sorted(runs.keys() & existing))
        late = sorted((wallets.keys() - runs.keys()) & existing)
        known = {}
        if late:
            known = {row[0]: row for row in self._run(timelines.SUMMARIES_OF_RUNS, run_ids=_texts(late))}
        if runs:
            self._summaries(runs, {**waiting, **wallets})
        if known:
            joined = [wallets[name] for name in known]
            self._run(timelines.JOIN_RESERVATIONS, run_ids=_texts(known), **_reservations(joined))
        early = [event for name, event in wallets.items() if name not in runs and name not in known]
        if early:
            self._unlinked(early)
        if waiting:
            self._run(
                timelines.DECIDE_UNLINKED,
                event_ids=_words(event["eventId"] for event in waiting.values()),
                states=_words("linked" for _ in waiting),
                run_event_ids=_words(runs[name]["eventId"] for name in waiting),
                disagreements=_words("NULL" for _ in waiting),
            )
        unlinked = {event["eventId"] for event in early}
        self._identifiers(events, unlinked)
        self._entries([event for event in events if event["eventId"] not in unlinked] + list(waiting.values()))

    def _waiting(self, run_ids: list[str]) -> dict[str, Row]:
        import orjson

        if not run_ids:
            return {}
        found = self._run(timelines.PENDING_OF_RUNS, run_ids=_texts(run_ids))
        return {run_id: orjson.loads(envelope) | {"sha256": sha256} for run_id, envelope, sha256 in found}

    def _summaries(self, runs: dict[str, Row], wallets: dict[str, Row]) -> None:
        events = list(runs.values())
        payloads = [event["payload"] for event in events]
        self._run(
            timelines.STORE_SUMMARIES,
            operation_ids=_texts(event["operationId"] for event in events),
            run_ids=_texts(runs),
            run_event_ids=_words(event["eventId"] for event in events),
            tenant_kinds=_words(event["tenantKind"] for event in events),
            tenant_ids=_texts(event["tenantId"] for event in events),
            workspace_ids=_texts(event["workspaceId"] for event in events),
            project_ids=_words(event.get("projectId", "NULL") for event in events),
            correlation_ids=_texts(event["correlationId"] for event in events),
            account_ids=_texts(payload["billingAccountId"] for payload in payloads),
            reservation_ids=_texts(payload["billingReservationId"] for payload in payloads),
            manifest_refs=_texts(payload["runAdmissionManifestRef"] for payload in payloads),
            manifest_schema_versions=_words(payload["runAdmissionManifestSchemaVersion"] for payload in payloads),
            manifest_digests=_words(payload["runAdmissionManifestDigest"] for payload in payloads),
            runs_created_at=_words(event["occurredAt"] for event in events),
            **_reservations([wallets.get(name) for name in runs]),
        )

    def _unlinked(self, wallets: Sequence[Row]) -> None:
        self._run(
            timelines.STORE_UNLINKED,
            event_ids=_words(event["eventId"] for event in wallets),
            run_ids=_texts(event["payload"]["runId"] for event in wallets),
            reservation_ids=_texts(event["payload"]["billingReservationId"] for event in wallets),
            operation_ids=_texts(event["operationId"] for event in wallets),
            envelopes=_texts(event["text"].replace('"', '\\"') for event in wallets),
            digests=_words(event["sha256"] for event in wallets),
            occurred_at=_words(event["occurredAt"] for event in wallets),
            states=_words("pending" for _ in wallets),
            run_event_ids=_words("NULL" for _ in wallets),
            disagreements=_words("NULL" for _ in wallets),
        )

    def _identifiers(self, events: Sequence[Row], unlinked: set[str]) -> None:
        rows = [row for event in events for row in _identifiers(event, unlinked=event["eventId"] in unlinked)]
        values, kinds, event_ids, operation_ids = zip(*rows, strict=True)
        self._run(
            timelines.STORE_IDENTIFIERS,
            values=_texts(values),
            kinds=_words(kinds),
            event_ids=_words(event_ids),
            operation_ids=_words(operation_ids),
        )

    def _entries(self, events: Sequence[Row]) -> None:
        self._run(
            timelines.STORE_ENTRIES,
            operation_ids=_texts(event["operationId"] for event in events),
            occurred_at=_words(event["occurredAt"] for event in events),
            event_ids=_words(event["eventId"] for event in events),
            event_types=_words(event["eventType"] for event in events),
            schema_versions=_words(event["eventSchemaVersion"] for event in events),
            producers=_words("core" for _ in events),
            aggregate_ids=_texts(event["aggregateId"] for event in events),
            revisions=_words(str(event["aggregateRevision"]) for event in events),
            correlation_ids=_texts(event["correlationId"] for event in events),
            causation_ids=_words(event.get("causationId", "NULL") for event in events),
        )


def _identifiers(event: Row, *, unlinked: bool) -> list[tuple[str, str, str, str]]:
    own, payload = event["eventId"], event["payload"]
    operation = "NULL" if unlinked else f'"{event["operationId"]}"'
    rows = [(own, "event", own, operation)]
    if "causationId" in event:
        rows.append((event["causationId"], "causation", own, operation))
        rows.append((payload["billingReservationId"], "reservation", own, operation))
    else:
        rows.append((event["correlationId"], "correlation", own, operation))
    if unlinked:
        rows.append((payload["runId"], "run", own, operation))
        rows.append((event["operationId"], "operation", own, operation))
        rows.append((event["correlationId"], "correlation", own, operation))
    return rows


def _reservations(wallets: Sequence[Row | None]) -> dict[str, str]:
    return {
        "states": _words("linked" if wallet else "source_delayed" for wallet in wallets),
        "reservation_event_ids": _words(wallet["eventId"] if wallet else "NULL" for wallet in wallets),
        "currencies": _words(wallet["payload"]["currency"] if wallet else "NULL" for wallet in wallets),
        "holds": _words(wallet["payload"]["holdAmountPicos"] if wallet else "NULL" for wallet in wallets),
        "reserved_at": _words(wallet["occurredAt"] if wallet else "NULL" for wallet in wallets),
    }


def _words(values: Any) -> str:
    return "{" + ",".join(values) + "}"


def _texts(values: Any) -> str:
    return '{"' + '","'.join(values) + '"}'

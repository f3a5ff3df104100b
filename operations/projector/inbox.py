"""The inbox transaction: source, projection, identifiers, receipts and build summary of a batch, or nothing (O26).

All events of one call come from one producer under one definition and go into one build. The verdicts mean what they
say only after the transaction has committed. Weakness: an event that breaks a rule which only the database sees undoes
the whole batch; the caller then repeats it in halves until that event stands alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import transaction

from config.owners import owner_named
from operations.projector import statements
from operations.projector.contracts import CONSUMER_NAME
from operations.projector.examine import Examined, Refusal
from operations.projector.issue_receipt import acknowledge, issue
from operations.projector.revisions import Course, course
from operations.timelines.fact import Part
from operations.timelines.project import project
from outbox import steps
from outbox.contracts.canonical import DIGEST_ALGORITHM
from outbox.contracts.contract import timestamp
from outbox.contracts.delivery import NonRetryable, Retryable, RetryClass, Verdict
from outbox.raw import Cursor, raw_cursor
from outbox.text_array import texts, words

CORE = owner_named("core")
ALIAS = CORE.alias

Verdicts = dict[str, Verdict]
"""By event id; a batch holds each event once."""


class Overtaken(RuntimeError):
    """Another transaction applied one of these events at this moment. Transient: look again."""


class SourceConflict(RuntimeError):
    """The source store holds one of these events, or its revision, with other bytes. Permanent."""


def apply(events: Sequence[Examined]) -> Verdicts:
    """Apply what can be applied, in one transaction, and say what became of each event.

    Raises `Overtaken`, `SourceConflict`, `OperationTaken` or a database error; then nothing was applied.
    """
    with transaction.atomic(using=ALIAS, durable=True), raw_cursor(ALIAS) as cursor:
        verdicts = _Inbox(cursor, events).run()
        steps.reach("in_inbox")
    steps.reach("inbox_committed")
    return verdicts


class _Inbox:
    def __init__(self, cursor: Cursor, events: Sequence[Examined]) -> None:
        first = events[0]
        definition = first.request.member.definition
        self.cursor = cursor
        self.events = events
        self.build = first.build
        self.common: dict[str, Any] = {
            "consumer": CONSUMER_NAME,
            "producer": first.request.producer,
            "name": first.build.projection_name,
            "version": first.build.projection_version,
            "algorithm": DIGEST_ALGORITHM,
            "set_version": definition.ref,
            "set_schema_version": definition.schema_version,
            "set_algorithm": definition.digest_algorithm_version,
            "set_digest": definition.digest,
        }
        self.verdicts: Verdicts = {}

    def run(self) -> Verdicts:
        self.cursor.execute(statements.OPEN)
        [(now, *_)] = self.cursor.fetchall()
        applied_at = timestamp(now)
        unseen = self._answer_repeated(self.events)
        if unseen:
            courses, existing = self._lock(unseen)
            applied = [event for one in courses.values() for event in one.applied]
            if applied:
                self._store(applied, applied_at)
                project(
                    self.cursor,
                    [event.fact for event in applied],
                    projection_version=self.build.projection_version,
                    untouched=courses.keys() - existing.keys(),
                )
            self._settle_gaps(courses, existing)
            if applied:
                last = max(event.request.event_id for event in applied)
                self._execute(statements.SUMMARISE_BUILD, applied=len(applied), last_event_id=last)
        return self.verdicts

    def _execute(self, statement: str, **parameters: Any) -> int:
        self.cursor.execute(statement, self.common | parameters)
        return int(self.cursor.rowcount)

    def _answer_repeated(self, events: Iterable[Examined]) -> list[Examined]:
        """Answer what has a receipt with that receipt; return the rest."""
        by_id = {event.request.event_id: event for event in events}
        self._execute(statements.STORED_RECEIPTS, event_ids=words(list(by_id)))
        for event_id, sha256, *frozen, digest, applied_at in self.cursor.fetchall():
            event = by_id.pop(event_id)
            keys = ("producer", "set_version", "set_schema_version", "set_algorithm", "set_digest")
            issued = issue(event.request, build=self.build, applied_at=timestamp(applied_at))
            if (
                sha256 != event.request.envelope_sha256
                or digest != issued.digest
                or frozen != [self.common[key] for key in keys]
            ):
                self.verdicts[event_id] = NonRetryable(Refusal.EVENT_CONFLICT)
            else:
                self.verdicts[event_id] = acknowledge(event.request, build=self.build, issued=issued)
        return list(by_id.values())

    def _lock(self, events: list[Examined]) -> tuple[Mapping[str, Course], Mapping[str, bool]]:
        """The course of each aggregate, its row locked; and, of those that existed before, whether a gap is open.

        A reservation also locks the aggregate of its run, which is where the two meet.
        """
        of_aggregate: dict[str, list[Examined]] = defaultdict(list)
        for event in events:
            of_aggregate[event.request.aggregate_id].append(event)
            if event.fact.part is Part.RESERVATION:
                of_aggregate[event.fact.payload.run_id]  # an empty list is made for the run
        names = sorted(of_aggregate)
        courses = {name: course(of_aggregate[name], from_revision=0) for name in names}
        self._execute(
            statements.CREATE_AGGREGATES,
            aggregate_ids=texts(names),
            revisions=words([str(one.revision) for one in courses.values()]),
            gaps=words(["t" if one.waiting else "f" for one in courses.values()]),
        )
        existing = courses.keys() - {name for (name,) in self.cursor.fetchall()}
        locked: dict[str, tuple[int, bool]] = {}
        if existing:
            self._execute(statements.LOCK_AGGREGATES, aggregate_ids=texts(sorted(existing)))
            locked = {name: (revision, has_gap) for name, revision, has_gap in self.cursor.fetchall()}
            # What another transaction applied while this one waited for the lock has a receipt by now.
            unseen = self._answer_repeated(event for name in existing for event in of_aggregate[name])
            of_aggregate.update({name: [] for name in existing})
            for event in unseen:
                of_aggregate[event.request.aggregate_id].append(event)
            courses |= {name: course(of_aggregate[name], from_revision=locked[name][0]) for name in existing}
        for one in courses.values():
            for event in one.taken:
                self.verdicts[event.request.event_id] = NonRetryable(
                    Refusal.REVISION_CONFLICT, f"revision {event.request.aggregate_revision} is applied"
                )
        return courses, {name: has_gap for name, (_, has_gap) in locked.items()}

    def _store(self, applied: Sequence[Examined], applied_at: str) -> None:
        requests = [event.request for event in applied]
        columns = {
            "event_ids": words([request.event_id for request in requests]),
            "event_types": words([request.member.event_type for request in requests]),
            "schema_versions": words([request.member.event_schema_version for request in requests]),
            "digests": words([request.envelope_sha256 for request in requests]),
        }
        if self.common["producer"] != CORE.name:
            self._execute(
                statements.STORE_SOURCES,
                **columns,
                aggregate_ids=texts([request.aggregate_id for request in requests]),
                revisions=words([str(request.aggregate_revision) for request in requests]),
                envelopes=texts([request.envelope.decode() for request in requests]),
            )
            self._execute(statements.COUNT_SOURCES, event_ids=columns["event_ids"], digests=columns["digests"])
            if self.cursor.fetchall() != [(len(requests),)]:
                raise SourceConflict(SourceConflict.__doc__)
        issued = [issue(request, build=self.build, applied_at=applied_at) for request in requests]
        stored = self._execute(
            statements.STORE_RECEIPTS,
            **columns,
            receipt_digests=words([one.digest for one in issued]),
        )
        if stored != len(requests):
            raise Overtaken(Overtaken.__doc__)
        for request, one in zip(requests, issued, strict=True):
            self.verdicts[request.event_id] = acknowledge(request, build=self.build, issued=one)

    def _settle_gaps(self, courses: Mapping[str, Course], existing: Mapping[str, bool]) -> None:
        """Record who waits, wake who waited, and move the aggregates that existed before.

        `existing` says of each of them whether it had an open gap.
        """
        waiting = sorted(
            ((event, one.revision + 1) for one in courses.values() for event in one.waiting),
            key=lambda pair: pair[0].request.event_id,
        )
        if waiting:
            requests = [event.request for event, _ in waiting]
            self._execute(
                statements.RECORD_GAPS,
                aggregate_ids=texts([request.aggregate_id for request in requests]),
                event_ids=words([request.event_id for request in requests]),
                event_types=words([request.member.event_type for request in requests]),
                waiting=words([str(request.aggregate_revision) for request in requests]),
                missing=words([str(missing) for _, missing in waiting]),
            )
            for request, missing in zip(requests, (missing for _, missing in waiting), strict=True):
                detail = f"revision {request.aggregate_revision} waits for revision {missing}"
                self.verdicts[request.event_id] = Retryable(RetryClass.WAITING_PREDECESSOR, "revision_gap", detail)
        moved = [name for name in sorted(existing) if courses[name].applied or courses[name].waiting]
        if moved:
            position = {
                "aggregate_ids": texts(moved),
                "revisions": words([str(courses[name].revision) for name in moved]),
            }
            if any(existing[name] for name in moved):
                self._execute(statements.NARROW_GAPS, **position)
            self._execute(statements.ADVANCE_AGGREGATES, **position)

"""A small world in which everything that may legally happen has happened."""

import hashlib
import io
import uuid
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import connections, transaction

from attachments.claims.delete import delete_attachment
from attachments.connectors.rotate import revoke as revoke_secret
from attachments.connectors.rotate import rotate as rotate_secret
from attachments.files.path import StoredPath
from attachments.files.receive import receive
from attachments.files.stage import StagedFiles
from billing.commercial import hooks
from billing.commercial.sweep import sweep
from billing.finalization.sweep import sweep_admissions
from billing.ledger.models import ChargeSource
from config.owners import owner_named
from metering.clusters.administrators import grant, mint
from metering.clusters.audit import Actor
from metering.clusters.clusters import create_cluster
from metering.clusters.models import Mode
from metering.clusters.revoke import revoke
from metering.clusters.rotate import rotate
from metering.clusters.secret_store import FileStore
from outbox.append import Event, append_many
from outbox.claim import Claimer
from outbox.dispatch import Dispatcher
from outbox.members import Members
from outbox.transport import ask
from tests.billing.books import funded_account, standard_prices
from tests.claims import make as claim
from tests.commercial import make as commercial
from tests.commercial.test_cost import COST, import_costs
from tests.connectors import make as connector
from tests.consumption import make as consumption
from tests.files import papers
from tests.outbox.make import admission, run_created, wallet_reserved
from tests.upstream.requests import AT, request
from tests.verify.tamper import tamper
from upstream.admission.admit import admit_runs
from upstream.admission.contracts import HOLD_FOR_RUNS, HoldForRuns
from upstream.admission.contracts.hold import ADMISSION_WORKLOAD


def append(*events: Event) -> None:
    """Append and commit events of core."""
    with transaction.atomic(using="default"):
        append_many(events, using="default")


def drain() -> None:
    """Deliver whatever is due at core."""
    with Dispatcher(owner_named("core")) as dispatcher:
        dispatcher.drain()


def build() -> None:
    """Three admitted and delivered runs; one of each: an admission refused after its hold, a hold nobody confirmed, an
    open gap, an unlinked reservation, a quarantined event, a recovered lease, an expired lease, a pending event.
    """
    standard_prices()
    account = funded_account()
    admit_runs([request(account) for _ in range(3)], at=AT)
    hold(account)
    sweep_admissions(unconfirmed_for=timedelta(0))
    hold(account)
    append(run_created(name="gap", aggregate_revision=2))
    append(wallet_reserved(name="alone", caused_by=uuid.uuid4()))
    append(run_created(name="odd", aggregate_id="run:another"))
    claim_and_vanish()
    drain()
    append(*admission("expired"))
    claim_and_vanish()
    append(*admission("pending"))
    tokens()
    quota()
    connectors()
    files()
    claims()
    telemetry()


def tokens() -> None:
    """A cluster's token that was superseded and revoked, its primary one, and an administrator's."""
    actor = Actor(name="alice", through="session")
    create_cluster(cluster_id=7, name="seven", mode=Mode.GATEWAY, actor=actor)
    first, _ = (rotate(cluster_id=7, actor=actor, store=FileStore()) for _ in range(2))
    revoke(cluster_id=7, token_id=first.token_id, actor=actor)
    grant(name="robot", actor=actor)
    mint(name="robot", life=timedelta(days=1), actor=actor)


def telemetry() -> None:
    """Two clusters' events, some of them twice or contradicted; one window charged and corrected, one that is dirty; an
    orphan, a refused charge, one that is not charged, and an event left out for standing under two times.
    """
    funded_account(tenant="org-telemetry", charge_source=ChargeSource.TELEMETRY)
    consumption.learn(k101="org-telemetry", k102="org-1")
    twice, contradicted, excluded = consumption.llm(), consumption.llm(), consumption.llm(event_id="twice")
    others = (consumption.llm(manager_key_id="102"), consumption.llm(manager_key_id="404"))
    consumption.receive(twice, contradicted, excluded, *others)
    samples = [consumption.sample(organization_id="org-2") for _ in range(2)]
    consumption.receive(*samples, mode="per_cluster", cluster="8")
    consumption.swept()
    consumption.receive(twice, consumption.contradicting(contradicted))
    consumption.exclude("twice")
    consumption.swept()
    consumption.receive(consumption.llm(consumption.WINDOW + 2 * consumption.HOUR))


def quota() -> None:
    """Quota that was counted with its cost, was left and found by a sweep, and is held in its second generation."""
    import_costs()
    contract = commercial.subscribe(cost=COST)
    using, at = commercial.BUSINESS, commercial.AT
    with hooks.business_transaction(using=using) as work:
        work.reserve(commercial.operation(contract), quantity=3, at=at)
        work.marker()
    hooks.reserve(commercial.operation(contract), quantity=2, using=using, at=at)
    sweep(business=using, held_for=timedelta(0))
    hooks.release(hooks.reserve(commercial.operation(contract, "again"), quantity=1, using=using, at=at))
    hooks.reserve(commercial.operation(contract, "again"), quantity=1, using=using, at=at)


def files() -> None:
    """A stored file that was replaced and whose removal rolled back, and one that was removed."""
    path = papers.path_of("kept")
    for body in (b"old", b"new"):
        place(path, body)
    place(papers.path_of("removed"), b"gone")
    with hooks.business_transaction(using=papers.ALIAS) as work:
        StagedFiles(work).remove(papers.path_of("removed"))
    with suppress(papers.Interrupted), hooks.business_transaction(using=papers.ALIAS) as work:
        StagedFiles(work).remove(path)
        raise papers.Interrupted


def claims() -> None:
    """Attachments that were uploaded, repeated, replaced and deleted, under a plan and without one."""
    for who in (claim.user(), claim.user(limit=None)):
        at = claim.item_of(who)
        kept = claim.uploaded(who, at, b"old", request_id="one")
        claim.uploaded(who, at, b"old", request_id="one")
        claim.uploaded(who, at, b"newer", replaces=kept.attachment.attachment_id)
        gone = claim.uploaded(who, at, b"deleted")
        delete_attachment(who, *at, gone.attachment.attachment_id)


def place(path: StoredPath, body: bytes) -> None:
    """Store one file."""
    with receive(io.BytesIO(body)) as incoming, hooks.business_transaction(using=papers.ALIAS) as work:
        StagedFiles(work).place(path, incoming)


def connectors() -> None:
    """A connector whose secrets are revoked, superseded and current; an event that was replayed and contradicted,
    another one, one whose quota was given back, and one that nobody counts.
    """
    contract = commercial.subscribe(cost=COST, tool="connector", dimension="financial.ingest", period="year")
    made = connector.connector(tenant=contract.tenant_id)
    connector.deliver(made.connector_id, made.issued.secret, "msg_again")
    revoke_secret(connector_id=made.connector_id, secret_id=made.issued.secret_id, actor=connector.ACTOR)
    _, secret = (rotate_secret(connector_id=made.connector_id, actor=connector.ACTOR).issued.secret for _ in range(2))
    for body in (connector.BODY, b"another payload"):
        connector.deliver(made.connector_id, secret, "msg_again", body)
    connector.deliver(made.connector_id, secret, "msg_once")
    given_back = connector.operation_of(
        made.connector_id, webhook_id="msg_given_back", body_sha256=hashlib.sha256(connector.BODY).hexdigest()
    )
    using = commercial.BUSINESS
    hooks.release(hooks.reserve(given_back, quantity=1, using=using, at=commercial.AT))
    free = connector.connector(tenant="org:without-contract", name="free")
    connector.deliver(free.connector_id, free.issued.secret, "msg_free")


def hold(account: str) -> None:
    """Billing holds money for a run that core never commits."""
    ask(HOLD_FOR_RUNS, workload=ADMISSION_WORKLOAD, expected=HoldForRuns(requests=(request(account),)))


def claim_and_vanish() -> None:
    """A worker claims what is due and is never heard of again; its leases have run out."""
    alias = owner_named("core").dispatch_alias
    connections[alias].ensure_connection()
    connection: Any = connections[alias].connection
    Claimer("gone", Members(alias), 500, 30, 1).claim(connection, "core_operations")
    tamper("core", "UPDATE outbox_deliveries SET lease_expires_at = now() - interval '1 s' WHERE status = 'leased'")

"""One business transaction, and everything outside its database that must follow how it ends (C3).

    with business_transaction(using="attachments") as work:
        work.reserve(operation, quantity=size, at=now)                   # refused: nothing was touched
        work.register(complete=drop_backup, compensate=restore)          # before the file is moved
        …                                                                # rows and files

After COMMIT the completions run in the order of registration, after a rollback the compensations in reverse. Nested,
it is a savepoint. If that is rolled back, what was registered inside is compensated at once, in reverse; its quota is
given back when the outermost transaction has ended: the refusal must not depend on a commit that is still to come.

If the answer to COMMIT is lost, the marker says how it ended. Only where nobody can be asked does `OutcomeUnknown`
reach the caller, and everything is left as it is for the sweep.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog
from django.db import InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from uuid_utils.compat import uuid7

from billing.commercial import metrics
from billing.commercial.callbacks import Callback, Pair, TransactionCallbacks
from billing.commercial.ending import PATIENCE_SECONDS, end_by_marker, end_permit
from billing.commercial.errors import InFlight, OutcomeUnknown, TransactionLost, WrongTransaction
from billing.commercial.markers.mark import Decision, MarkerKey, decide, mark, owner_with_markers
from billing.commercial.models import EndedBy, ReservationState
from billing.commercial.operation import Operation
from billing.commercial.permit import Permit
from billing.commercial.reserve import reserve
from outbox.steps import reach

log = structlog.get_logger("billing.commercial")


class BusinessTransaction:
    """One scope of a business transaction: the outermost, or a savepoint in it. `business_transaction` opens it."""

    def __init__(self, *, using: str, around: "BusinessTransaction | None" = None) -> None:
        self._using = using
        self.transaction_id: UUID = around.transaction_id if around else uuid7()
        """Names the whole business transaction: the same in every savepoint of it, stored nowhere."""
        self._depth = len(connections[using].savepoint_ids)
        self._callbacks = TransactionCallbacks()
        self._own: list[MarkerKey] = []
        self._work: MarkerKey | None = None

    def reserve(self, operation: Operation, *, quantity: int, at: datetime) -> Permit:
        """Hold quota and tie it to this scope: counted if it commits, given back if not. Call it before any effect.

        Raises what `reserve` and `bind` raise; let the error end the transaction.
        """
        self._ensure_innermost()
        return self.bind(reserve(operation, quantity=quantity, using=self._using, at=at))

    def bind(self, permit: Permit) -> Permit:
        """Tie a permit that was asked for earlier to this scope, and leave its marker.

        Raises `ReservationLost` if it was given back meanwhile, `InFlight` if the same operation is under way.
        """
        self._ensure_innermost()
        if permit.using != self._using:
            raise WrongTransaction(f"The permit is for {permit.using!r}: {WrongTransaction.__doc__}")
        if not permit.holds_quota:
            return permit
        pair = Pair(
            complete=partial(end_permit, permit, ReservationState.SETTLED, by=EndedBy.COMPLETION),
            compensate=partial(end_by_marker, permit, by=EndedBy.COMPENSATION),
            at_end=True,
        )
        self._callbacks.pairs.append(pair)
        try:
            if mark(permit.marker, using=self._using):
                self._own.append(permit.marker)
        except InFlight:
            # Whoever is at work under this permit ends it.
            self._callbacks.pairs.remove(pair)
            raise
        reach("commercial.marked")
        return permit

    def register(self, *, complete: Callback | None = None, compensate: Callback | None = None) -> None:
        """Run `complete` after the commit, `compensate` after a rollback, of this scope or of one around it.

        Register before the effect that may have to be compensated. After a rolled-back savepoint `compensate` runs
        inside the transaction around it. Whatever they raise is logged and changes nothing.
        """
        self._ensure_innermost()
        self._callbacks.pairs.append(Pair(complete, compensate))

    def marker(self) -> MarkerKey:
        """The key of this scope's own marker, which is inserted when it is first asked for.

        Write the key down elsewhere, through another connection and before an effect; then `decide` tells at any later
        time how this scope ended.
        """
        self._ensure_innermost()
        if self._work is None:
            self._work = MarkerKey.of_new_work()
            mark(self._work, using=self._using)
            self._own.append(self._work)
        return self._work

    def _ensure_innermost(self) -> None:
        connection = connections[self._using]
        scopes = _open.get(connection, [])
        if not scopes or scopes[-1] is not self:
            raise WrongTransaction("This scope is not the innermost open one. Use the one that the `with` gave you.")
        if len(connection.savepoint_ids) != self._depth:
            raise WrongTransaction("A plain `atomic` is open inside. Nest business_transaction instead.")

    def _before_commit(self) -> None:
        """Make sure that there is something to commit, and that it can be proven where anything depends on it."""
        connection = connections[self._using]
        if connection.closed_in_transaction:
            raise TransactionLost(TransactionLost.__doc__)
        if self._callbacks.pairs and not self._own and not connection.needs_rollback:
            self.marker()
        reach("commercial.before_commit")

    def _how_it_ended(self) -> Decision | None:
        """After COMMIT raised: what the marker says; None if nobody can be asked now."""
        if not self._own:
            return Decision.REFUSED
        try:
            decision = decide(self._own[0], using=self._using, patience=PATIENCE_SECONDS)
        except (OperationalError, InterfaceError):
            return None
        return None if decision is Decision.LIVE else decision


_open: WeakKeyDictionary[BaseDatabaseWrapper, list[BusinessTransaction]] = WeakKeyDictionary()
"""The open scopes of each connection, outermost first. A connection belongs to one thread."""


@contextmanager
def business_transaction(*, using: str) -> Iterator[BusinessTransaction]:
    """The business transaction on `using`, or a savepoint if one is open there. See the module.

    Raises `WrongTransaction` inside a plain `atomic` block of this alias, `NoMarkers`, `OutcomeUnknown`,
    `TransactionLost`, and whatever the block or its COMMIT raised.
    """
    owner_with_markers(using)
    scopes = _open.setdefault(connections[using], [])
    with (_savepoint if scopes else _outermost)(scopes, using=using) as scope:
        yield scope


@contextmanager
def _savepoint(scopes: list[BusinessTransaction], *, using: str) -> Iterator[BusinessTransaction]:
    around = scopes[-1]
    around._ensure_innermost()
    scope: BusinessTransaction | None = None
    try:
        with transaction.atomic(using=using):
            scope = BusinessTransaction(using=using, around=around)
            with _innermost(scopes, scope):
                yield scope
            rolled_back = connections[using].needs_rollback
    except BaseException:
        if scope is not None:
            around._callbacks.undo(scope._callbacks)
        raise
    if rolled_back:
        around._callbacks.undo(scope._callbacks)
    else:
        around._callbacks.adopt(scope._callbacks)
        around._own += scope._own


@contextmanager
def _outermost(scopes: list[BusinessTransaction], *, using: str) -> Iterator[BusinessTransaction]:
    connection = connections[using]
    if connection.in_atomic_block:
        raise WrongTransaction(f"A plain `atomic` is open on {using!r}. Open business_transaction around it instead.")
    scope: BusinessTransaction | None = None
    commits = False
    try:
        with transaction.atomic(using=using, durable=True):
            scope = BusinessTransaction(using=using)
            with _innermost(scopes, scope):
                yield scope
                scope._before_commit()
            commits = not connection.needs_rollback
    except BaseException as error:
        if scope is None:
            raise
        if commits and _committed_after_all(scope, error):
            return
        if not commits:
            _follow_rollback(scope)
        raise
    (_follow_commit if commits else _follow_rollback)(scope)


@contextmanager
def _innermost(scopes: list[BusinessTransaction], scope: BusinessTransaction) -> Iterator[None]:
    scopes.append(scope)
    try:
        yield
    finally:
        scopes.pop()


def _follow_commit(scope: BusinessTransaction) -> None:
    reach("commercial.committed")
    scope._callbacks.after_commit()


def _follow_rollback(scope: BusinessTransaction) -> None:
    reach("commercial.rolled_back")
    scope._callbacks.after_rollback()


def _committed_after_all(scope: BusinessTransaction, error: BaseException) -> bool:
    """COMMIT, or a hook that ran after it, raised `error`: follow what the marker says.

    True if the transaction committed and only the answer was lost. Raises `OutcomeUnknown`.
    """
    decision = scope._how_it_ended()
    if decision is None:
        metrics.outcome_unknown()
        log.error("quota_outcome_unknown", error_class=type(error).__name__)
        raise OutcomeUnknown(OutcomeUnknown.__doc__) from error
    if decision is Decision.REFUSED:
        _follow_rollback(scope)
        return False
    _follow_commit(scope)
    lost = isinstance(error, (OperationalError, InterfaceError))
    if lost:
        log.warning("quota_commit_answer_lost", error_class=type(error).__name__)
    return lost

"""What core may order of billing through the transport."""

from django.utils import timezone

from billing.finalization.reserve import hold_for_runs
from billing.finalization.settle_hold import confirm_holds, release_holds_of
from outbox.transport import Pass
from upstream.admission.contracts import AdmittedHolds, HoldAnswers, HoldForRuns, SettleAnswers, UnadmittedHolds


def answer_hold_for_runs(expected: HoldForRuns, *, caller: Pass) -> HoldAnswers:  # the door checked it
    """`holdForRuns`: prices are those in effect now."""
    return HoldAnswers(answers=tuple(hold_for_runs(expected.requests, at=timezone.now())))


def answer_confirm_admitted_holds(expected: AdmittedHolds, *, caller: Pass) -> SettleAnswers:  # likewise
    """`confirmAdmittedHolds`"""
    return SettleAnswers(answers=tuple(confirm_holds(expected.holds)))


def answer_release_unadmitted_holds(
    expected: UnadmittedHolds,
    *,
    caller: Pass,  # likewise
) -> SettleAnswers:
    """`releaseUnadmittedHolds`"""
    return SettleAnswers(answers=tuple(release_holds_of(expected.holds)))

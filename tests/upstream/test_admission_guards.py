import pytest
from django.db import connections, transaction

from billing.finalization.models import BillingReservation
from tests.billing.attempts import NO_PRIVILEGE, refusal_of
from tests.billing.books import funded_account, standard_prices
from tests.upstream.requests import AT, request
from upstream.admission.admit import admit_run
from upstream.admission.contracts import UnadmittedOperation
from upstream.admission.outcomes import Admitted
from upstream.admission.refuse import refuse_operations

pytestmark = [pytest.mark.usefixtures("database")]

CORE = {
    "admission_outcomes": ("admission_outcome", "state = 'refused'"),
    "runs": ("run", "billing_account_id = 'x'"),
    "run_admission_manifests": ("run_admission_manifest", "candidate = '{}'"),
    "wallet_reservations": ("wallet_reservation", "hold_amount_picos = 0"),
    "admission_refusals": ("admission_refusal", "reason = 'core_failed'"),
}
BILLING = {
    "billing_reservations": ("billing_reservation", "run_id = 'x'"),
    "billing_finalization_fences": ("billing_finalization_fence", "run_id = 'x'"),
    "billing_finalization_works": ("billing_finalization_work", "digest = 'x'"),
}


@pytest.fixture(autouse=True)
def admitted(database: None) -> Admitted:
    standard_prices()
    answer = admit_run(request(funded_account()), at=AT)
    assert isinstance(answer, Admitted)
    refuse_operations(
        [UnadmittedOperation(operation_id="refused-1", request_sha256="a" * 64)], reason="admission_abandoned", at=AT
    )
    return answer


@pytest.mark.trap("D30")
@pytest.mark.parametrize(("owner", "table"), [("default", table) for table in CORE] + [("billing", t) for t in BILLING])
def test_no_login_role_changes_deletes_or_truncates_facts(owner: str, table: str) -> None:
    name, change = {**CORE, **BILLING}[table]
    ignore = "SET pgtrigger.ignore = 'all'"
    for role in ("", ".dispatch", ".read"):
        for statement in (f"UPDATE {table} SET {change}", f"DELETE FROM {table}", f"TRUNCATE {table} CASCADE"):
            assert refusal_of(f"{owner}{role}", ignore, statement) == NO_PRIVILEGE
    schema = f"{owner}.schema"
    assert refusal_of(schema, ignore, f"UPDATE {table} SET {change}").startswith(name)
    assert refusal_of(schema, ignore, f"DELETE FROM {table}").startswith(name)
    assert refusal_of(schema, ignore, f"TRUNCATE {table} CASCADE").endswith("_truncate")


def copy_run(**changes: str) -> list[str]:
    """The statements that would store the admitted run a second time under other names, with these changes."""
    value = {
        "outcome_state": "'admitted'", "outcome_run": "'run:2'", "run_operation": "'operation-2'",
        "run_account": "billing_account_id", "manifest_run": "'run:2'", "wallet_run": "'run:2'",
        "digest": "digest", "candidate": "candidate", "picos": "hold_amount_picos", **changes,
    }  # fmt: skip
    return [
        "INSERT INTO admission_outcomes (operation_id, request_sha256, state, run_id)"
        f" VALUES ('operation-2', repeat('b', 64), {value['outcome_state']}, {value['outcome_run']})",
        "INSERT INTO run_admission_manifests (run_admission_manifest_ref, schema_version, digest_algorithm_version,"
        " digest, candidate, run_id, admitted_at)"
        f" SELECT 'manifest-2', schema_version, digest_algorithm_version, {value['digest']},"
        f" {value['candidate']}, {value['manifest_run']}, admitted_at FROM run_admission_manifests",
        "INSERT INTO wallet_reservations (billing_reservation_id, run_id, billing_account_id, currency,"
        " hold_amount_picos, wallet_reserved_event_id, reserved_at)"
        f" SELECT 'reservation:2', {value['wallet_run']}, billing_account_id,"
        f" currency, {value['picos']}, gen_random_uuid(), reserved_at FROM wallet_reservations",
        "INSERT INTO runs (run_id, operation_id, tenant_kind, tenant_id, workspace_id, billing_account_id,"
        " billing_reservation_id, run_admission_manifest_id, run_created_event_id, admitted_at)"
        f" SELECT 'run:2', {value['run_operation']}, tenant_kind, tenant_id, workspace_id, {value['run_account']},"
        " 'reservation:2', 'manifest-2', gen_random_uuid(), admitted_at FROM runs",
    ]


@pytest.mark.spec("O5")
@pytest.mark.parametrize("alias", ["default", "default.schema"])
def test_a_run_is_stored_whole_or_not_at_all(alias: str, admitted: Admitted) -> None:
    whole = copy_run()
    assert refusal_of(alias, *whole) == "run_is_whole"
    text = (
        f"replace(replace(replace(candidate, '{admitted.run_id}', 'run:2'), '{admitted.operation_id}', 'operation-2'),"
        f" '{admitted.billing_reservation_id}', 'reservation:2')"
    )
    consistent = {"candidate": text, "digest": f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"}
    assert refusal_of(alias, *copy_run(**consistent)) == "run_has_its_events"
    assert refusal_of(alias, *copy_run(**consistent, run_account="'account-2'")) == "run_is_whole"
    assert refusal_of(alias, *copy_run(**consistent, picos="hold_amount_picos + 1")) == "run_is_whole"
    for missing in range(4):
        refused = refusal_of(alias, *(statement for at, statement in enumerate(whole) if at != missing))
        assert "_" in refused, "a named constraint"
    assert refusal_of(alias, *copy_run(digest="repeat('0', 64)")) == "run_admission_manifest_digest"
    assert refusal_of(alias, *copy_run(candidate="replace(candidate, 'USD', 'EUR')")) == "run_admission_manifest_digest"
    assert refusal_of(alias, *copy_run(outcome_state="'refused'")) == "admission_outcome_shape"
    assert refusal_of(alias, *copy_run(outcome_run="NULL")) == "admission_outcome_shape"
    assert refusal_of(alias, *copy_run(picos="-1")) == "wallet_reservation_not_negative"
    taken = f"INSERT INTO admission_outcomes (operation_id, request_sha256, state, run_id) VALUES ('{admitted.operation_id}', repeat('c', 64), 'admitted', 'run:9')"  # noqa: E501  # one statement
    assert refusal_of(alias, taken) == "admission_outcomes_pkey"


def test_a_run_cannot_be_stored_under_a_refused_operation() -> None:
    statements = copy_run(run_operation="'refused-1'")[1:]
    assert refusal_of("default", *statements) in {"run_has_outcome", "run_is_whole"}
    again = (
        "INSERT INTO admission_outcomes (operation_id, request_sha256, state, run_id)"
        " VALUES ('refused-1', repeat('a', 64), 'admitted', 'run:2')"
    )
    assert refusal_of("default", again) == "admission_outcomes_pkey"


@pytest.mark.parametrize("alias", ["billing", "billing.schema"])
def test_a_reservation_moves_only_along_its_transitions(alias: str) -> None:
    open_account = funded_account()
    refusal = (
        "admission_refusal_ref = 'r', admission_refusal_schema_version = '1',"
        " admission_refusal_digest_algorithm_version = 'jcs-sha256-v1', admission_refusal_digest = 'd'"
    )
    released = f"UPDATE billing_reservations SET state = 'released', released_at = now(), {refusal}"
    assert refusal_of(alias, "UPDATE billing_reservations SET confirmed_at = NULL") == "billing_reservation_transition"
    assert refusal_of(alias, released + ", confirmed_at = NULL") == "billing_reservation_transition"
    _unconfirmed(open_account)
    of_open = " WHERE confirmed_at IS NULL"
    assert refusal_of(alias, released + of_open) == "billing_reservation_equals_hold"
    bare = "UPDATE billing_reservations SET state = 'released', released_at = now()"
    assert refusal_of(alias, bare + of_open) == "billing_reservation_shape"
    assert refusal_of(alias, "UPDATE billing_reservations SET state = 'lost'" + of_open) in {
        "billing_reservation_state_closed", "billing_reservation_shape",
    }  # fmt: skip
    forward = "UPDATE billing_finalization_fences SET fence_revision = fence_revision + {by}, {what}"
    assert refusal_of(alias, forward.format(by=2, what="active_work_id = active_work_id")) == (
        "billing_finalization_fence_forward"
    )
    assert refusal_of(alias, forward.format(by=1, what="latest_work_generation = 3")) == (
        "billing_finalization_fence_forward"
    )
    assert refusal_of(alias, forward.format(by=1, what="active_work_id = NULL")) == "billing_finalization_fence_shape"
    work = (
        "INSERT INTO billing_finalization_works (billing_finalization_work_ref, schema_version,"
        " digest_algorithm_version, digest, candidate, fence_id, work_generation, billing_finalization_operation_id,"
        " created_at)"
        " SELECT 'w2', '1', 'jcs-sha256-v1', digest, {candidate}, fence_id, {generation}, 'o2', now()"
        " FROM billing_finalization_works LIMIT 1"
    )
    assert refusal_of(alias, work.format(candidate="candidate || ' '", generation=2)) == (
        "billing_finalization_work_digest"
    )
    assert refusal_of(alias, work.format(candidate="candidate", generation=1)) == (
        "billing_finalization_work_generation"
    )


def _unconfirmed(account: str) -> None:
    from outbox import steps

    def stop(step: str) -> None:
        if step == "admission.held":
            raise KeyboardInterrupt

    steps.hook = stop
    try:
        with pytest.raises(KeyboardInterrupt):
            admit_run(request(account), at=AT)
    finally:
        steps.hook = None
    assert BillingReservation.objects.filter(confirmed_at=None).count() == 1
    assert not connections["default"].in_atomic_block
    assert transaction.get_connection("billing").get_autocommit()

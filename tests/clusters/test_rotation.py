"""Rotation: no moment at which what a collector may hold is refused before its deadline (T2, T3, T10)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from metering.clusters.clusters import create_cluster
from metering.clusters.errors import RotationUnderWay, RotationUnsettled, UnknownCluster, UnknownToken
from metering.clusters.grace import rotation_grace
from metering.clusters.models import Cluster, Mode, OtlpToken, TokenState
from metering.clusters.plaintext import Plaintext
from metering.clusters.revoke import revoke
from metering.clusters.rotate import Rotated, rotate
from metering.clusters.secret_store import FileStore, Slot
from tests.clusters.conftest import ACTOR, audited, database_time, header_of, let_in, outcome, states
from tests.clusters.stores import Step, Stepped
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.spec("T2")]
SHORT = timedelta(microseconds=1)
P, S, U, M, R = (
    TokenState.PRIMARY,
    TokenState.SUPERSEDED,
    TokenState.UNSETTLED,
    TokenState.MINTED,
    TokenState.REVOKED,
)


def held(store: FileStore, slot: Slot, cluster_id: int = 7) -> str | None:
    return store.read(cluster_id=cluster_id, slot=slot)


@pytest.mark.spec("T3")
@pytest.mark.parametrize(
    ("propagation", "factor", "hours"),
    [(480, 3, 72), (240, 3, 72), (86_400, 3, 72), (86_401, 3, 72 + 3 / 3600), (172_800, 2, 96), (1, 1, 72)],
)
def test_grace_follows_the_propagation_bound_above_the_floor_of_72_hours(
    settings: Any, propagation: float, factor: int, hours: float
) -> None:
    settings.OTLP_TOKEN_PROPAGATION, settings.OTLP_TOKEN_SAFETY_FACTOR = propagation, factor
    assert rotation_grace() == timedelta(hours=hours)


def test_a_first_rotation_hands_the_token_to_the_store_and_keeps_its_hash_only(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    done = rotated()
    assert held(store, Slot.PRIMARY) == done.plaintext.text
    assert held(store, Slot.SECONDARY) is None
    assert done.superseded == ()
    row = OtlpToken.objects.using("metering.read").get(token_id=done.token_id)
    assert row.token_sha256 == Plaintext(done.plaintext.text).sha256
    assert (row.state, row.mode, row.expires_at) == (P, Mode.GATEWAY, None)
    assert audited(token_id=done.token_id) == ["token_minted", "token_primary"]


@pytest.mark.spec("T3")
@pytest.mark.trap("T10")
def test_two_rotations_inside_grace_leave_each_token_its_own_deadline_to_the_microsecond(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    first, second, third = rotated(), rotated(), rotated()
    assert [one.token_id for one in second.superseded] == [first.token_id]
    assert [one.token_id for one in third.superseded] == [second.token_id]
    assert (held(store, Slot.PRIMARY), held(store, Slot.SECONDARY)) == (third.plaintext.text, second.plaintext.text)
    assert states(7) == [S, S, P]
    deadlines = {first: second.superseded[0].expires_at, second: third.superseded[0].expires_at}
    assert deadlines[second] > deadlines[first]
    for token, deadline in deadlines.items():
        assert deadline - token.issued_at >= timedelta(hours=72)
        for now, expected in (
            (token.issued_at, "accepted"),
            (deadline - SHORT, "accepted"),
            (deadline, "token_expired"),
            (deadline + timedelta(days=3650), "token_expired"),
        ):
            assert outcome(header_of(token), now) == expected
    assert outcome(header_of(third), database_time() + timedelta(days=3650)) == "accepted"


def test_a_mode_that_is_given_holds_for_this_token_and_the_later_ones(
    cluster: int, rotated: Callable[[], Rotated], store: FileStore
) -> None:
    before = rotated()
    changed = rotate(cluster_id=7, actor=ACTOR, store=store, mode=Mode.PER_CLUSTER)
    after = rotated()
    assert [let_in(one).mode for one in (before, changed, after)] == ["gateway", "per_cluster", "per_cluster"]
    assert Cluster.objects.using("metering.read").get(cluster_id=7).token_mode == Mode.PER_CLUSTER
    assert audited(action="cluster_changed", cluster_id=7) == ["cluster_changed"]


@pytest.mark.trap("T10")
@pytest.mark.parametrize("step", [Step.READ, Step.SECONDARY, Step.PRIMARY, Step.AFTER_PRIMARY])
def test_a_store_that_fails_at_any_step_ends_no_token_and_the_next_rotation_settles_it(
    rotated: Callable[[], Rotated], store: FileStore, step: Step
) -> None:
    first = rotated()
    with pytest.raises(RotationUnsettled, match="rotate again"):
        rotate(cluster_id=7, actor=ACTOR, store=Stepped(store, fails_at=step))
    assert states(7) == [P, U]
    given = held(store, Slot.PRIMARY)
    assert given is not None
    far = database_time() + timedelta(days=3650)
    assert outcome(b"Bearer " + given.encode(), far) == "accepted"
    assert outcome(header_of(first), far) == "accepted"
    last = rotated()
    assert states(7) == [S, S, P]
    assert held(store, Slot.PRIMARY) == last.plaintext.text
    assert held(store, Slot.SECONDARY) == given
    assert outcome(b"Bearer " + given.encode(), database_time() + timedelta(hours=71)) == "accepted"


@pytest.mark.trap("T10")
@pytest.mark.parametrize("step", [Step.READ, Step.SECONDARY, Step.PRIMARY, Step.AFTER_PRIMARY])
def test_a_process_that_dies_at_any_step_ends_no_token_and_is_overtaken_later(
    rotated: Callable[[], Rotated], store: FileStore, step: Step
) -> None:
    first = rotated()
    with pytest.raises(KeyboardInterrupt):
        rotate(cluster_id=7, actor=ACTOR, store=Stepped(store, dies_at=step))
    assert states(7) == [P, M]
    with pytest.raises(RotationUnderWay):
        rotated()
    given = held(store, Slot.PRIMARY)
    assert given is not None
    _age_rotation_under_way()
    last = rotated()
    assert states(7) == [S, S, P]
    for header in (header_of(first), b"Bearer " + given.encode(), header_of(last)):
        assert outcome(header, database_time() + timedelta(hours=71)) == "accepted"


def _age_rotation_under_way() -> None:
    """What a minute of waiting would do: the schema role alone can, by lifting the guard by DDL."""
    with connections["metering.schema"].cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("ALTER TABLE otlp_tokens DISABLE TRIGGER USER")
        cursor.execute("UPDATE otlp_tokens SET issued_at = issued_at - interval '61 s' WHERE state = 'minted'")
        cursor.execute("ALTER TABLE otlp_tokens ENABLE TRIGGER USER")
        cursor.execute("COMMIT")


def test_a_rotation_that_was_overtaken_says_so_and_ends_no_token(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    first = rotated()
    others: list[Rotated] = []

    def overtake() -> None:
        _age_rotation_under_way()
        others.append(rotated())

    with pytest.raises(RotationUnsettled, match="overtaken"):
        rotate(cluster_id=7, actor=ACTOR, store=Stepped(store, between=(Step.PRIMARY, overtake)))
    assert states(7) == [S, S, P]
    given = held(store, Slot.PRIMARY)
    assert given is not None
    soon = database_time() + timedelta(hours=71)
    for header in (header_of(first), header_of(others[0]), b"Bearer " + given.encode()):
        assert outcome(header, soon) == "accepted"


def test_a_rotation_whose_token_is_revoked_meanwhile_does_not_make_it_primary(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    rotated()

    def revoke_it() -> None:
        token = OtlpToken.objects.using("metering").get(state=M)
        revoke(cluster_id=7, token_id=token.token_id, actor=ACTOR)

    with pytest.raises(RotationUnsettled, match="revoked"):
        rotate(cluster_id=7, actor=ACTOR, store=Stepped(store, between=(Step.PRIMARY, revoke_it)))
    assert states(7) == [P, R]


@pytest.mark.trap("T10")
def test_parallel_rotations_of_one_cluster_end_one_by_one_or_say_that_one_is_under_way(
    cluster: int, store: FileStore
) -> None:
    def attempt() -> Rotated | None:
        try:
            return rotate(cluster_id=7, actor=ACTOR, store=store)
        except RotationUnderWay:
            return None

    done = [one for one in in_threads([attempt] * 6) if one is not None]
    assert done
    assert states(7) == [S] * (len(done) - 1) + [P]
    primary = OtlpToken.objects.using("metering.read").get(state=P)
    given = held(store, Slot.PRIMARY)
    assert given is not None
    assert Plaintext(given).sha256 == primary.token_sha256
    for one in done:
        let_in(one)


def test_rotations_of_different_clusters_do_not_touch_each_other(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    create_cluster(cluster_id=8, name="eight", mode=Mode.PER_CLUSTER, actor=ACTOR)
    seven = rotated()
    eight = rotate(cluster_id=8, actor=ACTOR, store=store)
    assert (let_in(seven).cluster_id, let_in(eight).cluster_id) == (7, 8)
    with pytest.raises(UnknownToken):
        revoke(cluster_id=8, token_id=seven.token_id, actor=ACTOR)
    assert states(7) == states(8) == [P]


def test_a_store_that_lost_its_secrets_or_holds_a_refused_one_gives_no_secondary(
    rotated: Callable[[], Rotated], store: FileStore
) -> None:
    first, second = rotated(), rotated()
    revoke(cluster_id=7, token_id=second.token_id, actor=ACTOR)
    third = rotated()
    assert (held(store, Slot.PRIMARY), held(store, Slot.SECONDARY)) == (third.plaintext.text, first.plaintext.text)
    store.write(cluster_id=7, slot=Slot.PRIMARY, secret="nobody-knows-this-one")
    fourth = rotated()
    assert (held(store, Slot.PRIMARY), held(store, Slot.SECONDARY)) == (fourth.plaintext.text, first.plaintext.text)


def test_an_unknown_cluster_has_no_token_to_rotate(database: None, store: FileStore) -> None:
    with pytest.raises(UnknownCluster, match="clusters create"):
        rotate(cluster_id=99, actor=ACTOR, store=store)


def test_revoking_again_changes_nothing_and_is_audited_once(rotated: Callable[[], Rotated]) -> None:
    done = rotated()
    assert revoke(cluster_id=7, token_id=done.token_id, actor=ACTOR)
    assert not revoke(cluster_id=7, token_id=done.token_id, actor=ACTOR)
    assert audited(token_id=done.token_id) == ["token_minted", "token_primary", "token_revoked"]


def test_parallel_revocations_of_one_token_have_one_effect(rotated: Callable[[], Rotated]) -> None:
    done = rotated()
    answers = in_threads([lambda: revoke(cluster_id=7, token_id=done.token_id, actor=ACTOR)] * 6)
    assert sorted(answers) == [False] * 5 + [True]

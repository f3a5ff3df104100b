"""Who pays for a managed key: learnt once, told for ever (T13)."""

import pytest

from metering.clusters.errors import InvalidKey, KeyConflict
from metering.clusters.managed_keys import BATCH, Key, Learnt, known_key, learn_keys, organizations_of
from tests.clusters.conftest import ACTOR, audited
from tests.upstream.threads import in_threads

pytestmark = [pytest.mark.spec("T13"), pytest.mark.usefixtures("database")]


def learn(*keys: Key) -> Learnt:
    return learn_keys(keys=keys, actor=ACTOR)


def test_the_organisation_of_known_keys_is_told_and_unknown_ones_are_left_out() -> None:
    assert learn(Key("1", "organization-1"), Key("2", "organization-2")) == Learnt(2, 2)
    assert organizations_of(["1", "2", "2", "3", "01", "x", ""]) == {"1": "organization-1", "2": "organization-2"}
    assert organizations_of([]) == {}
    assert organizations_of(["3"]) == {}
    learn(Key("3", "organization-1"))
    assert organizations_of(["3"]) == {"3": "organization-1"}


def test_importing_again_adds_what_is_new_and_takes_over_labels_only() -> None:
    learn(Key("1", "organization-1", "old"))
    assert learn(Key("1", "organization-1", "new"), Key("2", "organization-1")) == Learnt(2, 1)
    assert known_key("1") == Key("1", "organization-1", "new")
    assert known_key("9") is None
    assert audited() == ["keys_imported", "keys_imported"]
    assert learn(Key("1", "organization-1", "new")) == Learnt(1, 0)
    assert len(audited()) == 2


def test_one_key_of_another_organisation_refuses_the_whole_import() -> None:
    learn(Key("5", "organization-1"))
    many = [Key(str(number), "organization-2") for number in range(10, 10 + BATCH)]
    with pytest.raises(KeyConflict, match=r"5 \(organization-1\)"):
        learn(*many, Key("5", "organization-2"))
    with pytest.raises(KeyConflict, match="given twice"):
        learn(Key("6", "organization-1"), Key("6", "organization-2"))
    assert organizations_of(["5", "6", "10"]) == {"5": "organization-1"}


@pytest.mark.parametrize("key", [Key("", "o"), Key("0", "o"), Key("a", "o"), Key("1", ""), Key("1", "a b")])
def test_a_key_that_is_none_refuses_the_whole_import(key: Key) -> None:
    with pytest.raises(InvalidKey, match="nothing was imported"):
        learn(Key("7", "organization-1"), key)
    assert organizations_of(["7"]) == {}


def test_of_parallel_imports_that_disagree_one_is_believed_and_the_others_are_told() -> None:
    def attempt(organization: str) -> bool:
        try:
            learn(*(Key(str(number), organization) for number in (*range(1, 50), *range(49, 0, -1))))
        except KeyConflict:
            return False
        return True

    names = [f"organization-{number}" for number in range(6)]
    believed = in_threads([lambda name=name: attempt(name) for name in names])  # type: ignore[misc]  # binds the loop's name
    assert believed.count(True) == 1
    (winner,) = [name for name, ok in zip(names, believed, strict=True) if ok]
    assert set(organizations_of([str(number) for number in range(1, 50)]).values()) == {winner}


def test_many_keys_are_learnt_in_batches() -> None:
    keys = [Key(str(number), f"organization-{number % 7}") for number in range(1, 2 * BATCH + 2)]
    assert learn(*keys) == Learnt(2 * BATCH + 1, 2 * BATCH + 1)
    assert organizations_of([key.manager_key_id for key in keys]) == {k.manager_key_id: k.organization_id for k in keys}

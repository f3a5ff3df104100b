"""A digest covers exactly what its contract says, and whoever reads such an object has it proven."""

import json
from typing import Any

import pytest
import rfc8785

from outbox.contracts.canonical import sha256_hex
from outbox.contracts.contract import ContentAddressed, ContentReference, ContractViolation, Identifier
from outbox.contracts.publish.catalogue import Published, catalogue
from tests.conftest import ROOT
from tests.contracts.shapes import Note, Right, note, reference
from tests.contracts.test_contract import changed

pytestmark = pytest.mark.spec("O6", "O21")

ADDRESSED = [item for item in catalogue(ROOT) if issubclass(item.contract, ContentAddressed)]


def test_the_digest_is_that_of_the_document_without_ref_digest_and_own_time() -> None:
    written = note()
    document = json.loads(written.canonical())
    for name in ("fieldNoteRef", "fieldNoteDigest", "writtenAt"):
        del document[name]
    assert sha256_hex(rfc8785.dumps(document)) == written.reference.digest == written.recompute_digest()


def test_what_is_excluded_changes_nothing_and_everything_else_does() -> None:
    first = note()
    assert note(written_at="2027-01-01T00:00:00.000000Z").reference.digest == first.reference.digest
    assert Note.issue(**{**dict(first), "ref": "field-note:2"}).reference.digest == first.reference.digest
    others = (
        {"author": "author:2"},
        {"words": "other"},
        {"final": False},
        {"branch": Right()},
        {"page": reference("d")},
        {"supersedes": "x"},
    )
    assert len({note(**other).reference.digest for other in others} | {first.reference.digest}) == len(others) + 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"author": "author:2"}, "digest does not match"),
        ({"fieldNoteDigest": "0" * 64}, "digest does not match"),
        ({"pageRef": "thing:other"}, "digest does not match"),
        ({"fieldNoteSchemaVersion": "2"}, "unknown schema version '2'"),
        ({"fieldNoteDigestAlgorithmVersion": "jcs-sha256-v2"}, "fieldNoteDigestAlgorithmVersion"),
    ],
)
def test_a_forged_object_cannot_be_read(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ContractViolation, match=reason):
        Note.parse(changed(note().canonical(), **fields))


def test_an_object_that_was_changed_in_memory_is_not_proven() -> None:
    written = note()
    assert written.ensure_digest() is written
    with pytest.raises(ContractViolation, match="digest does not match"):
        written.model_copy(update={"author": "author:2"}).ensure_digest()


def test_an_embedded_object_is_not_taken_for_proven() -> None:
    written = note()
    forged = Note.from_wire(written.wire() | {"author": "author:2"})
    with pytest.raises(ContractViolation, match="digest does not match"):
        forged.ensure_digest()


def test_fields_that_do_not_fit_are_refused_when_issued() -> None:
    with pytest.raises(ContractViolation, match="author"):
        note(author="two words")
    with pytest.raises(ContractViolation, match="extra"):
        note(extra=1)


def test_excluding_what_does_not_exist_is_refused_when_the_class_is_made() -> None:
    with pytest.raises(TypeError, match="writen_at"):

        class Misspelt(ContentAddressed, own="misspelt", version="1", excluded=("writen_at",)):
            author: Identifier


def test_the_own_reference_need_not_be_repeated_in_the_class() -> None:
    class Brief(ContentAddressed, own="brief", version="1"):
        author: Identifier

    issued = Brief.issue(ref="brief:1", author="a")
    assert isinstance(issued.reference, ContentReference)
    assert next(iter(issued.wire())) == "briefRef"


@pytest.mark.parametrize("item", ADDRESSED, ids=lambda item: item.name)
def test_the_digest_of_a_published_object_covers_each_field_that_its_page_does_not_exclude(item: Published) -> None:
    for example in item.examples.values():
        assert isinstance(example, ContentAddressed)
        document = example.wire()
        assert item.excluded < set(document)
        for name in document:
            covered = json.loads(json.dumps(document)) | {name: "changed"}
            differs = type(example)._digest(covered) != example.reference.digest
            assert differs is (name not in item.excluded), name

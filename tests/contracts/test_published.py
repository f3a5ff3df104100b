"""What is published is current, and holds against implementations that are not ours: rfc8785, hashlib, jsonschema."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import rfc8785

from outbox.contracts.contract import Contract
from outbox.contracts.first_release import first_release
from outbox.contracts.publish.artefacts import GOLDENS, PAGE, SCHEMAS, TYPESCRIPT, stale, write
from outbox.contracts.publish.catalogue import Published, Unpublishable, catalogue
from outbox.contracts.publish.json_schema import schema_of
from outbox.contracts.publish.typescript import TOOL
from tests.conftest import ROOT
from tests.contracts.shapes import Loose, note

pytestmark = pytest.mark.spec("O6")

CATALOGUE = catalogue(ROOT)
EXAMPLES = [(item, name) for item in CATALOGUE for name in item.examples]


def golden(item: Published, name: str, suffix: str) -> bytes:
    return (ROOT / GOLDENS / item.room / f"{name}{suffix}").read_bytes()


@pytest.mark.parametrize(("item", "name"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_golden_holds_against_implementations_that_are_not_ours(item: Published, name: str) -> None:
    raw, canonical = json.loads(golden(item, name, ".json")), golden(item, name, ".canonical.json")
    assert rfc8785.dumps(raw) == canonical
    lines = [line.split("  ") for line in golden(item, name, ".sha256").decode().splitlines()]
    digests = {file: digest for digest, file in lines}
    assert digests[f"{name}.canonical.json"] == hashlib.sha256(canonical).hexdigest()
    schema = json.loads((ROOT / SCHEMAS / item.room / f"{item.name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(raw)
    if item.excluded:
        candidate = golden(item, name, ".candidate.json")
        own = {key: value for key, value in raw.items() if key not in item.excluded}
        digest = hashlib.sha256(candidate).hexdigest()
        assert rfc8785.dumps(own) == candidate
        assert digests[f"{name}.candidate.json"] == digest
        assert digest in {value for key, value in raw.items() if key in item.excluded}


@pytest.mark.parametrize(("item", "name"), EXAMPLES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_golden_is_read_by_its_contract_and_written_again_byte_for_byte(item: Published, name: str) -> None:
    canonical = golden(item, name, ".canonical.json")
    assert item.contract.parse(canonical).canonical() == canonical


@pytest.mark.parametrize("item", CATALOGUE, ids=lambda item: item.name)
def test_a_schema_is_closed_flat_and_knows_no_null(item: Published) -> None:
    schema = schema_of(item)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"

    def visit(part: Any) -> None:
        if isinstance(part, list):
            for inner in part:
                visit(inner)
        if isinstance(part, dict):
            assert part.get("type") != "null"
            assert part.get("type") != "number"
            assert "default" not in part
            if "properties" in part:
                assert part["additionalProperties"] is False
                assert not {"page", "reference"} & set(part["properties"])
            for inner in part.values():
                visit(inner)

    visit(schema)


@pytest.mark.parametrize("item", CATALOGUE, ids=lambda item: item.name)
def test_a_field_is_required_on_the_wire_exactly_if_a_document_without_it_is_refused(item: Published) -> None:
    schema = schema_of(item)
    validator = jsonschema.Draft202012Validator(schema)
    optional = {
        field.alias
        for field in item.contract.model_fields.values()
        if not field.is_required() and field.default is None
    }
    assert set(schema["properties"]) - set(schema.get("required", [])) == optional
    for example in item.examples.values():
        document = json.loads(example.canonical())
        for name in document:
            without = {key: value for key, value in document.items() if key != name}
            assert validator.is_valid(without) is (name in optional)
        assert not validator.is_valid(document | {"unknown": 1})
        assert not any(validator.is_valid(document | {name: None}) for name in document)


@pytest.mark.spec("O7")
def test_the_first_release_is_a_golden() -> None:
    item = next(item for item in CATALOGUE if item.name == "DeliverySetDefinition")
    assert golden(item, "DeliverySetDefinition.first_release", ".canonical.json") == first_release().canonical()


@pytest.mark.spec("O20")
def test_all_four_branches_of_the_ack_are_goldens() -> None:
    item = next(item for item in CATALOGUE if item.name == "ActiveConsumerAck")
    assert {name.partition(".")[2] for name in item.examples} == {
        "operations_projection",
        "metering_input_processor",
        "billing_finalization_coordinator",
        "billing_settlement_catch_up",
    }


def test_everything_published_is_current() -> None:
    assert [str(item) for item in stale(ROOT)] == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what is published and of the code that it is made from."""
    for room in {item.room.partition(".")[0] for item in CATALOGUE}:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (SCHEMAS, TYPESCRIPT, GOLDENS):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / PAGE, tmp_path / PAGE)
    return tmp_path


def test_whatever_is_touched_by_hand_lost_or_left_over_is_stale(tree: Path) -> None:
    assert stale(tree) == ()
    ack = TYPESCRIPT / "outbox" / "ActiveConsumerAck.ts"
    (tree / ack).write_text((tree / ack).read_text().replace("eventId: string", "eventId: number"))
    schema = SCHEMAS / "outbox" / "Envelope.schema.json"
    (tree / schema).write_text((tree / schema).read_text().replace('"minLength": 1', '"minLength": 0'))
    lost = GOLDENS / "outbox" / "Envelope.sha256"
    (tree / lost).unlink()
    extra = GOLDENS / "outbox" / "Forgotten.json"
    (tree / extra).write_text("{}")
    (tree / PAGE).write_text((tree / PAGE).read_text().replace("Owner: `outbox`", "Owner: nobody"))
    assert {item.path for item in stale(tree)} == {ack, schema, lost, extra, PAGE}


def test_writing_repairs_everything_that_needs_no_node(tree: Path) -> None:
    (tree / GOLDENS / "outbox" / "Envelope.json").write_text("{}")
    (tree / SCHEMAS / "outbox" / "Old.schema.json").write_text("{}")
    assert len(write(tree)) == 2
    assert stale(tree) == ()


def test_a_type_file_is_stale_when_the_tool_changes_version(tree: Path) -> None:
    package = tree / TOOL / "package.json"
    package.write_text(package.read_text().replace("15.0.4", "15.0.5"))
    assert {item.path.suffix for item in stale(tree)} == {".ts"}
    assert len(stale(tree)) == len(CATALOGUE)


def test_an_unreachable_registry_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(tree / "cache"))
    (tree / TYPESCRIPT / "outbox" / "Envelope.ts").unlink()
    with pytest.raises(Unpublishable, match=r"npm ci .* failed.*\n.*needs the npm registry"):
        write(tree)


def test_a_contract_that_could_hold_what_has_no_canonical_form_is_not_published() -> None:
    loose = Loose(number=1, words="w", anything={})
    with pytest.raises(Unpublishable, match=r"\$\.number, \$\.words, \$\.anything"):
        schema_of(Published(contract=Loose, room="tests", version="1", event_type=None, examples={"Loose": loose}))


def test_the_version_of_a_content_addressed_object_is_a_constant_of_its_schema() -> None:
    written = note()
    schema = schema_of(
        Published(contract=type(written), room="tests", version="3", event_type=None, examples={"Note": written})
    )
    assert schema["properties"]["fieldNoteSchemaVersion"] == {"type": "string", "const": "3"}


def test_the_command_checks_without_a_database_and_reports_what_is_current(run_django: Callable[..., Any]) -> None:
    done = run_django("contracts", "--check")
    assert (done.returncode, done.stdout.strip()) == (0, "Every contract is published as it is.")


def test_each_event_of_the_first_release_that_has_a_payload_contract_is_published() -> None:
    covered = {event.event_type for event in first_release().applicable_events}
    published = {item.event_type for item in CATALOGUE if item.event_type}
    assert {"run.created@2.0", "wallet.reserved@2.0"} <= published <= covered
    assert all(isinstance(example, Contract) for item in CATALOGUE for example in item.examples.values())

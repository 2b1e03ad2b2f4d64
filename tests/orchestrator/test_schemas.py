"""The schemas of our own forms: real documents are valid, broken ones are not, and readers agree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, cast, get_type_hints

import attrs
import pytest
from jsonschema import Draft202012Validator

from orchestrator import (
    Budget,
    Candidate,
    Generation,
    MergedSpec,
    Orchestrator,
    Request,
    RunReport,
    Usage,
    load_spec,
)
from orchestrator.adapter_errors import EvaluationError, GenerationError
from orchestrator.configuration import load_configuration
from orchestrator.conform import Lockfile, aconform
from orchestrator.documents import read_document
from orchestrator.errors import DocumentError
from orchestrator.evaluators.reports import read_json
from orchestrator.exports.document import export_json
from orchestrator.exports.lines import export_lines
from orchestrator.generators.protocol import read_generation, write_request
from orchestrator.journal.memory import MemoryJournal
from orchestrator.schemas import KINDS, UnknownKindError, schema, schema_text
from orchestrator.spec.dumping import dump_spec
from orchestrator.testing import ManualClock
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.codec import encode
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Fact
from orchestrator_events.isolation import Isolation, Probe
from orchestrator_events.record import Record
from orchestrator_events.registry import event_class, event_names
from orchestrator_events.verdict import CaseResult, CaseStatus

SPEC = """
name = "colours"
intent = "Name the colours."
threat-model = "None."
properties = { sorted = true }

[constraints]
ONE = "Only colours."

[[evals.cases]]
name = "red"
verifies = ["ONE"]
input = { n = 1 }

[[adversarial]]
name = "green"
severity = "critical"
"""
CONFIGURATION = """
language = "python"

[generator]
command = ["llm", "-m", "qwen3"]
parameters = { temperature = 0.2 }
max_prompt_characters = 10000

[evaluator]
suite = "suite"
candidate-file = "colours.py"

[budget]
attempts = 5
time = "10m"
money = 0.5

[[strategy]]
kind = "parameter-variation"
values = { temperature = [0.2, 0.8] }

[[strategy]]
"""


def valid(kind: str, document: object) -> bool:
    """Whether a document keeps to the schema of a kind."""
    return not faults(kind, document)


def faults(kind: str, document: object) -> list[str]:
    """What a schema has against a document."""
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema(kind)).iter_errors(document)]


@attrs.frozen
class Documents:
    """One run, in every form."""

    journal: MemoryJournal
    reports: tuple[RunReport, ...]
    lockfile: Lockfile

    def export(self) -> dict[str, Any]:
        """The first run as a document."""
        return cast(dict[str, Any], json.loads(asyncio.run(export_json(self.journal, "passed"))))


@pytest.fixture(scope="module")
def documents() -> Documents:
    """Runs that passed and were exhausted, with text and with files, and a lockfile of two generators."""
    journal = MemoryJournal()

    def engine(answers: list[str], name: str = "one") -> Orchestrator:
        def generate(request: Request) -> Generation:
            text = answers[min(request.attempt, len(answers)) - 1]
            candidate = Candidate(files={"a.txt": text}) if text == "files" else Candidate(text)
            return Generation(candidate=candidate, usage=Usage(input_tokens=3))

        generate.__qualname__ = name
        return Orchestrator(
            generator=generate,
            evaluator=lambda submission: {"red": submission.candidate.text == "red" or "is not red"},
            budget=Budget(attempts=2, seconds=60),
            journal=journal,
            clock=ManualClock(),
        )

    spec = MergedSpec(name="colours", intent="Name red.")
    reports = (
        engine(["blue", "red"]).run(spec, run_id="passed"),
        engine(["files", "blue"]).run(spec, run_id="exhausted"),
    )
    lockfile = asyncio.run(aconform([engine(["red"]), engine(["blue"], "two")], spec))
    return Documents(journal, reports, lockfile)


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas(kind: str) -> None:
    """Every kind has a schema of the 2020-12 dialect, whose references hold, as stable text."""
    found = schema(kind)
    Draft202012Validator.check_schema(found)
    references = {value for key, value in pairs_in(found) if key == "$ref"}
    assert {f"#/$defs/{name}" for name in found.get("$defs", {})} == references
    assert json.loads(schema_text(kind)) == found


def pairs_in(value: object) -> list[tuple[str, Any]]:
    """Every key and value below a value."""
    if isinstance(value, dict):
        return [*value.items(), *(pair for item in value.values() for pair in pairs_in(item))]
    return [pair for item in value for pair in pairs_in(item)] if isinstance(value, list) else []


def test_unknown_kind() -> None:
    """A kind that is not there is answered with the near one."""
    with pytest.raises(UnknownKindError) as caught:
        schema("recrod")
    assert str(caught.value) == "no schema is called 'recrod': did you mean 'record'?"


def test_specs(tmp_path: Path) -> None:
    """What loads as a spec is valid, whether a person or we have written it."""
    file = tmp_path / "spec.toml"
    file.write_text(SPEC)
    assert faults("spec", read_document(file)) == []
    assert faults("spec", dump_spec(load_spec(file))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"intent": 5}, {"constraint": {}}, {"evals": "all"}, {"evals": [{"name": "a"}]}, {"threat_model": "x"},
        {"adversarial": [{"name": "a", "severity": "mild"}]},
    ],
)  # fmt: skip
def test_broken_specs(tmp_path: Path, change: dict[str, Any]) -> None:
    """A spec of another shape is refused by the schema, as it is by the reader."""
    file = tmp_path / "spec.toml"
    file.write_text(SPEC)
    broken = {**read_document(file), **change}
    (tmp_path / "broken.json").write_text(json.dumps(broken))
    with pytest.raises(DocumentError):
        load_spec(tmp_path / "broken.json")
    assert not valid("spec", broken)


def test_configurations(tmp_path: Path) -> None:
    """What loads as a configuration is valid; an empty one is."""
    file = tmp_path / "loop.toml"
    file.write_text(CONFIGURATION)
    load_configuration(file)
    assert faults("config", read_document(file)) == []
    assert faults("config", {}) == []


@pytest.mark.parametrize(
    "change",
    [
        {"generators": {}}, {"budget": {"attempts": True}}, {"generator": {"comand": "x"}},
        {"strategy": {"kind": "luck"}}, {"evaluator": {"candidate-file": "a", "candidate_file": "b"}},
        {"generator": {"command": [1]}},
    ],
)  # fmt: skip
def test_broken_configurations(tmp_path: Path, change: dict[str, Any]) -> None:
    """A configuration of another shape is refused by the schema, as it is by the reader."""
    (tmp_path / "broken.json").write_text(json.dumps(change))
    with pytest.raises(DocumentError):
        load_configuration(tmp_path / "broken.json")
    assert not valid("config", change)


def test_exports(documents: Documents) -> None:
    """Exports in both forms, and each of their records, are valid."""
    export = documents.export()
    assert faults("export", export) == []
    assert [faults("record", record["body"]) for record in export["records"]] == [[]] * len(export["records"])

    async def lines() -> list[str]:
        return [line async for line in export_lines(documents.journal, "exhausted")]

    found = [faults("line", json.loads(line)) for line in asyncio.run(lines())]
    assert found == [[]] * len(found)


def no_head(export: dict[str, Any]) -> None:
    """The head is gone."""
    del export["head"]


def short_digest(export: dict[str, Any]) -> None:
    """A digest is no digest."""
    export["records"][0]["digest"] = "ab"


def extra_field(export: dict[str, Any]) -> None:
    """An event has a field of its own."""
    export["records"][1]["body"]["event"]["mood"] = "good"


def event_of_another(export: dict[str, Any]) -> None:
    """An event has the name of another one."""
    export["records"][1]["body"]["name"] = "execution:end"


def floating(export: dict[str, Any]) -> None:
    """A time is no whole number."""
    export["records"][1]["body"]["at"] = 0.5


def gate(export: dict[str, Any]) -> None:
    """A gate stands where a fact should."""
    export["records"][1]["body"] = {**export["records"][1]["body"], "name": "generation:requested", "event": {}}


@pytest.mark.parametrize("damage", [no_head, short_digest, extra_field, event_of_another, floating, gate])
def test_broken_exports(documents: Documents, damage: Callable[[dict[str, Any]], None]) -> None:
    """An export whose shape was changed anywhere is refused."""
    export = deepcopy(documents.export())
    damage(export)
    assert not valid("export", export)


def test_every_event_is_in_the_schema_as_it_is_stored() -> None:
    """The stored form of every fact, with all its fields filled, is valid; without any one of them it is not."""
    facts = [kind for kind in map(event_class, event_names()) if issubclass(kind, Fact)]
    for kind in facts:
        body = json.loads(encode(Record("7f3a", 1, 5, "run", "ready", "ready", filled(kind))))
        assert faults("record", body) == []
        for name in body["event"]:
            less = {**body, "event": {key: value for key, value in body["event"].items() if key != name}}
            assert not valid("record", less)


VALUES: dict[Any, Any] = {
    int: 1,
    str: "text",
    bool: True,
    Blob: Blob("text"),
    Budget: Budget(seconds=1.5),
    Reservation: Reservation(key="k"),
    Reservation | None: Reservation(key="k"),
    Charge | None: Charge(),
    Isolation: Isolation(level="basic", backend="containment", probes=(Probe("network", "allowed"),)),
    Charge: Charge(),
    Blob | None: Blob("text"),
    tuple[CaseResult, ...]: (CaseResult("a", CaseStatus.TIMED_OUT, "late", "critical"),),
    tuple[DecisionTaken, ...]: (DecisionTaken("s", "deny", "no"),),
    tuple[str, ...]: ("a", "b"),
    tuple[Blob, ...]: (Blob("one"), Blob("two")),
    int | None: 404,
}


def filled(kind: type[Fact]) -> Fact:
    """An event of a kind with a value in every field."""
    hints = get_type_hints(kind)
    return kind(**{field.name: VALUES[hints[field.name]] for field in attrs.fields(kind)})


def test_results(documents: Documents) -> None:
    """Results of every ending are valid, also with what the command line adds."""
    found = [report.as_json() for report in documents.reports]
    found += [{**each, "exit_code": 0, "candidate_path": None, "journal": "runs/journal.sqlite"} for each in found]
    assert [faults("result", each) for each in found] == [[]] * 4


@pytest.mark.parametrize(
    "change",
    [{"kind": "verified"}, {"status": "good"}, {"candidate": None}, {"history": [{}]}, {"more": 1}, {"attempts": -1}],
)
def test_broken_results(documents: Documents, change: dict[str, Any]) -> None:
    """A result that says something else, or less, is refused."""
    assert not valid("result", {**documents.reports[0].as_json(), **change})


def test_lockfiles(documents: Documents) -> None:
    """A lockfile is valid; one that claims more, or another outcome, is not."""
    lockfile = json.loads(json.dumps(attrs.asdict(documents.lockfile)))
    assert faults("lockfile", lockfile) == []
    (first, *_) = lockfile["generators"]
    broken: list[dict[str, Any]] = [{"kind": "verified"}, {"format": "orchestrator.lock/2"}]
    broken.append({"generators": [{**first, "outcome": "fine"}]})
    assert [valid("lockfile", {**lockfile, **change}) for change in broken] == [False] * 3


REPORT: dict[str, Any] = {
    "protocol": "orchestrator.report/1",
    "cases": [{"id": "a", "status": "timed out", "message": "late"}],
}
BROKEN_REPORTS: list[dict[str, Any]] = [
    {"protocol": "orchestrator.report/2"}, {"cases": [{"id": "a"}]}, {"cases": [{"id": "a", "status": "missing"}]},
    {"cases": [{"id": 1, "status": "passed"}]}, {"summary": {}},
]  # fmt: skip


def test_reports() -> None:
    """The schema and the reader of reports agree."""
    assert faults("report", REPORT) == []
    assert len(read_json(json.dumps(REPORT).encode())) == 1
    for change in BROKEN_REPORTS:
        assert not valid("report", {**REPORT, **change})
        with pytest.raises(EvaluationError):
            read_json(json.dumps({**REPORT, **change}).encode())


def test_requests() -> None:
    """What a program is sent is valid; without one of its fields it is not."""
    request = Request(
        run_id="7f3a", attempt=1, prompt="p", parameters={"temperature": 0.5, "stop": ["a"]}, language="python",
        max_tokens=None, seconds=1.5, idempotency_key="k", spec_digest="sha256:00",
    )  # fmt: skip
    sent = json.loads(write_request(request))
    assert faults("request", sent) == []
    assert [name for name in sent if valid("request", {key: sent[key] for key in sent if key != name})] == []


@pytest.mark.parametrize(
    ("answer", "is_good"),
    [
        ({"candidate": "x"}, True),
        ({"files": {"a.txt": "x"}, "usage": {"input_tokens": 3}}, True),
        ({"candidate": "x", "files": None, "usage": None}, True),
        ({}, False),
        ({"candidate": "x", "files": {}}, False),
        ({"candidate": 5}, False),
        ({"candidate": "x", "usage": {"input_tokens": "3"}}, False),
        ({"candidate": "x", "note": "y"}, False),
    ],
)
def test_answers(answer: dict[str, Any], is_good: bool) -> None:
    """The schema and the reader of answers agree."""
    assert valid("answer", answer) is is_good
    if is_good:
        read_generation(json.dumps(answer))
    else:
        with pytest.raises(GenerationError):
            read_generation(json.dumps(answer))

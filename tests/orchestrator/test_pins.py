"""Pins: read strictly, written whole or not at all, and held against spec and suite before anything is spent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Budget, EvalCase, MergedSpec, Orchestrator, Submission
from orchestrator.audit import audit
from orchestrator.errors import DocumentError
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.pins import Pins, PinsError, cases_pinned, digest_of_suite, load_pins, save_pins
from orchestrator.ports import Verdict
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.run import CasesPinned

SPEC = MergedSpec(intent="x")
SUITE = {"test_a.py": "def test_a(): ...", "data/one.json": "1"}
PINS = Pins(spec_digest=SPEC.digest, cases=("a", "b"), suite_digest=digest_of_suite(SUITE), made_from="a trusted one")


class SuiteEvaluator:
    """Says which suite it runs, and that `a` and `b` passed."""

    name = "suite"

    def __init__(self, suite: Any = SUITE) -> None:
        self.suite = suite

    async def evaluate(self, submission: Submission) -> Verdict:
        """Everything passed."""
        del submission
        return Verdict.of({"a": True, "b": True})


def test_round_trip(tmp_path: Path) -> None:
    """What is saved is what is loaded, and nothing is left beside it."""
    save_pins(PINS, tmp_path / "pins.json")
    assert load_pins(tmp_path / "pins.json") == PINS
    assert [path.name for path in tmp_path.iterdir()] == ["pins.json"]


def test_failed_write_leaves_the_old_pins(tmp_path: Path) -> None:
    """Pins are replaced whole or not at all."""
    path = tmp_path / "pins.json"
    save_pins(PINS, path)
    unstorable = Pins(spec_digest=SPEC.digest, cases=("\ud800",))
    with pytest.raises(UnicodeEncodeError):
        save_pins(unstorable, path)
    assert load_pins(path) == PINS
    assert [each.name for each in tmp_path.iterdir()] == ["pins.json"]


def test_every_fault_at_once(tmp_path: Path) -> None:
    """A wrong file is refused with all that is wrong in it, and a misspelt key with the one that was meant."""
    path = tmp_path / "pins.json"
    path.write_text(json.dumps({"format": "other", "cases": ["a", 1], "spec_digst": SPEC.digest}))
    with pytest.raises(DocumentError) as caught:
        load_pins(path)
    told = str(caught.value).replace(str(path), "FILE")
    assert "did you mean 'spec_digest'" in told
    assert {line.split(": ")[1] for line in told.splitlines()} == {
        "$.format", "$.cases[1]", "$.spec_digst", "$.spec_digest",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cases": []}, "pins name at least one case"),
        ({"cases": ["a", "a"]}, "a case is pinned twice"),
        ({"cases": [""]}, "pins name at least one case"),
        ({"spec_digest": "sha256:1"}, "spec_digest is not `sha256:` and 64 hexadecimal digits"),
    ],
)
def test_pins_that_hold_nobody_to_anything(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """No case, one twice, or a digest that is none is refused."""
    path = tmp_path / "pins.json"
    path.write_text(json.dumps({"spec_digest": SPEC.digest, "cases": ["a"], **changes}))
    with pytest.raises(DocumentError, match=message):
        load_pins(path)


def test_digest_of_a_suite(tmp_path: Path) -> None:
    """Paths and bytes of all files count, whatever they are in; what Python and pytest leave does not."""
    (tmp_path / "data").mkdir()
    for path, text in SUITE.items():
        (tmp_path / path).write_text(text)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("x")
    others = [
        {},
        {**SUITE, "more": ""},
        {**SUITE, "test_a.py": ""},
        {"test_a.pyd": SUITE["test_a.py"], "data/one.json": "1"},
    ]
    assert digest_of_suite(tmp_path) == digest_of_suite(SUITE)
    assert len({digest_of_suite(SUITE), *map(digest_of_suite, others)}) == 5


def test_what_a_run_records() -> None:
    """Pinned ids, controls and the suite's digest; nothing where nothing is pinned."""
    evaluator = SuiteEvaluator()
    assert cases_pinned(SPEC, evaluator, None) is None
    assert cases_pinned(SPEC, evaluator, PINS, ["no"]) == CasesPinned(
        cases=("a", "b"), controls=("no",), suite_digest=PINS.suite_digest
    )


@pytest.mark.parametrize(
    ("spec", "suite", "controls", "message"),
    [
        (MergedSpec(intent="y"), SUITE, (), "the cases were pinned for the spec sha256:"),
        (SPEC, {**SUITE, "test_a.py": "changed"}, (), "the suite was changed: it was sha256:[0-9a-f]+, it is sha256:"),
        (SPEC, None, (), "does not say which suite it runs"),
        (SPEC, SUITE, ("a",), "a case cannot both pass and fail: take 'a' out of controls"),
        (SPEC, SUITE, ("no", "no"), "a control is empty or named twice"),
    ],
)
def test_pins_that_do_not_fit(spec: MergedSpec, suite: Any, controls: tuple[str, ...], message: str) -> None:
    """Pins of another spec or suite, and controls that contradict them, cost nothing."""
    generator = ScriptedGenerator(["never asked"])
    made = Orchestrator(generator=generator, evaluator=SuiteEvaluator(suite), pins=PINS, controls=controls)
    with pytest.raises(PinsError, match=message):
        made.run(spec)
    assert generator.requests == []


def test_pins_agree_with_the_spec() -> None:
    """Where the spec names its cases the pins must name the same."""
    spec = MergedSpec(intent="x", evals=(EvalCase(name="a"), EvalCase(name="c")))
    with pytest.raises(PinsError, match="the spec names its cases, and the pins differ in 'b', 'c'"):
        cases_pinned(spec, SuiteEvaluator(), Pins(spec_digest=spec.digest, cases=("a", "b")))


@pytest.mark.parametrize(
    ("report", "passes"),
    [
        ({"a": True, "b": True, "no": "as it should"}, True),
        ({"a": True, "no": "as it should"}, False),
        ({"a": True, "b": True, "c": True, "no": "as it should"}, False),
        ({"a": True, "b": True, "no": True}, False),
        ({"a": True, "b": True}, False),
    ],
)
def test_only_exact_equality_passes(report: dict[str, bool | str], passes: bool) -> None:
    """A run passes when the pinned cases passed, no other did, and the control failed."""
    pins = Pins(spec_digest=SPEC.digest, cases=("a", "b"))
    made = Orchestrator(
        generator=ScriptedGenerator(["x"]),
        evaluator=ScriptedEvaluator([report]),
        budget=Budget(attempts=1),
        pins=pins,
        controls=("no",),
    )
    assert (made.run(SPEC).status == "passed") is passes


@pytest.mark.parametrize("reports", [[{"a": True, "b": True, "no": True}, {"a": True, "b": True, "no": ""}]])
def test_runs_with_pins_and_controls_are_clean(reports: list[dict[str, bool | str]]) -> None:
    """An audit derives from the records what was expected: a tampered judge, then a pass."""
    pins = Pins(spec_digest=SPEC.digest, cases=("a", "b"))
    made = Orchestrator(
        generator=ScriptedGenerator(["x", "y"]),
        evaluator=ScriptedEvaluator(reports),
        pins=pins,
        controls=("no",),
        journal=(journal := MemoryJournal()),
    )
    result = made.run(SPEC)
    assert [[case.id for case in attempt.failing] for attempt in result.history] == [["(judge)"], []]
    assert "no" not in result.history[1].prompt.split("(judge)")[1].split()
    export = parse_export(asyncio.run(export_json(journal, result.run_id)))
    assert audit(export).findings == ()


def test_other_pins_are_another_run() -> None:
    """Pins are part of what may not change over a resume."""
    first = Orchestrator(generator=ScriptedGenerator(["x"]), evaluator=SuiteEvaluator(), pins=PINS)
    second = Orchestrator(generator=ScriptedGenerator(["x"]), evaluator=SuiteEvaluator())
    assert first.identity() != second.identity()

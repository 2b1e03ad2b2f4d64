"""The demonstration: offline, with a real suite, and with every kind of attempt in it."""

from __future__ import annotations

from importlib.resources import files

from orchestrator import Orchestrator, Passed
from orchestrator.demo import CANDIDATE_FILE, DemoGenerator, demo_evaluator, demo_spec


def test_demo() -> None:
    """A first try fails, a better one comes twice and is judged once, and the fourth conforms."""
    report = Orchestrator(generator=DemoGenerator(), evaluator=demo_evaluator()).run(demo_spec())
    assert isinstance(report, Passed)
    assert [(attempt.number, len(attempt.passed), attempt.repeats) for attempt in report.history] == [
        (1, 6, 0),
        (2, 8, 0),
        (3, 8, 1),
        (4, 12, 0),
    ]


def test_demo_spec_names_its_cases() -> None:
    """The cases that the spec expects are those that the suite has."""
    suite = files("orchestrator.demo").joinpath("suite", "test_durations.py.txt").read_text(encoding="utf-8")
    functions = {line[4 : line.index("(")] for line in suite.splitlines() if line.startswith("def test_")}
    assert demo_spec().expected_cases == frozenset(f"test_durations::{name}" for name in functions)
    assert CANDIDATE_FILE == "durations.py"

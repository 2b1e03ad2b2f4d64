"""CTRF: valid by the specification, and never greener than the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.evaluators.reports import read_ctrf
from orchestrator.exports.ctrf import export_ctrf
from orchestrator.run import Run
from orchestrator_events.verdict import CaseStatus
from orchestrator_states.run import RunState

GOLDEN = Path(__file__).parents[2] / "golden" / "ctrf.schema.json"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """The specification as a schema, formats checked."""
    schema = json.loads(GOLDEN.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def test_every_ending_is_valid(ended: Run, validator: Draft202012Validator) -> None:
    """A report of any ending keeps to the specification, and its summary counts its tests."""
    document = json.loads(export_ctrf(ended))
    assert [error.message for error in validator.iter_errors(document)] == []
    results = document["results"]
    counted = dict.fromkeys(("passed", "failed", "pending", "skipped", "other"), 0)
    for test in results["tests"]:
        counted[test["status"]] += 1
    summary = results["summary"]
    assert {name: summary[name] for name in ("tests", *counted)} == {"tests": len(results["tests"]), **counted}
    assert (counted["passed"] == len(results["tests"])) is (ended.state == RunState.PASSED)


@pytest.mark.parametrize(
    "broken",
    [
        {"reportFormat": "JUnit"},
        {"specVersion": "1"},
        {"results": {}},
        {"more": 1},
        {"timestamp": 5},
    ],
)
def test_the_schema_refuses_what_is_no_report(
    run_called: Callable[[str], Run], validator: Draft202012Validator, broken: dict[str, Any]
) -> None:
    """The schema that the reports are held against is a strict one."""
    assert not validator.is_valid({**json.loads(export_ctrf(run_called("passed"))), **broken})


def test_the_cases_of_the_closest_attempt(run_called: Callable[[str], Run]) -> None:
    """A case is told as the closest candidate met it, with the other attempts as its retries."""
    tests = json.loads(export_ctrf(run_called("exhausted")))["results"]["tests"]
    failed = {"status": "failed", "message": "no\nnot so", "extra": {"rawStatus": "failed"}}
    passed = {"status": "passed", "extra": {"rawStatus": "passed"}}
    skipped = {"status": "failed", "extra": {"rawStatus": "skipped"}}
    assert tests == [
        {
            "name": "palette::red", "status": "passed", "rawStatus": "passed", "duration": 0, "retries": 2,
            "retryAttempts": [{"attempt": 2, **passed}, {"attempt": 3, **passed}],
            "extra": {"attempt": 1, "severity": "critical"},
        },
        {
            "name": "palette::green", "status": "failed", "rawStatus": "failed", "message": "no\nnot so",
            "duration": 0, "retries": 2, "retryAttempts": [{"attempt": 2, **failed}, {"attempt": 3, **failed}],
            "extra": {"attempt": 1},
        },
        {
            "name": "only", "status": "failed", "rawStatus": "failed", "message": "no\nnot so", "duration": 0,
            "retries": 2, "retryAttempts": [{"attempt": 2, **skipped}, {"attempt": 3, **failed}],
            "extra": {"attempt": 1},
        },
    ]  # fmt: skip


def test_nothing_judged_is_not_a_success(run_called: Callable[[str], Run]) -> None:
    """A run without a verdict has one test that did not pass, with the reason."""
    shown = {"name": "a candidate is judged", "duration": 0}
    tests = [
        json.loads(export_ctrf(run_called(name)))["results"]["tests"]
        for name in ("nothing generated", "interrupted at once")
    ]
    assert tests == [
        [{**shown, "status": "failed", "rawStatus": "exhausted", "message": "ValueError: nothing came: <b>"}],
        [{**shown, "status": "other", "rawStatus": "generating", "message": "the run is generating"}],
    ]


def test_our_own_reader_finds_the_same_cases(run_called: Callable[[str], Run]) -> None:
    """What is written is read back."""
    found = [(case.id, case.status) for case in read_ctrf(export_ctrf(run_called("passed")).encode())]
    assert found == [
        ("palette::red", CaseStatus.PASSED),
        ("palette::green", CaseStatus.PASSED),
        ("only", CaseStatus.PASSED),
    ]

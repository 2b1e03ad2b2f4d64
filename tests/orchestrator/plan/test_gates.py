"""Gates: they open on captured output, and on nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.plan.gates import (
    Approval,
    Evidence,
    EvidenceError,
    Gate,
    judge,
    read_evidence,
    required_gates,
)
from orchestrator.plan.plan import ReviewGates, Step
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.vocabulary import Risk, TaskType

QA = Gate(ReviewKind.QA, "the step has a test plan")


def step(**fields: Any) -> Step:
    """A step of low risk."""
    return Step(
        **{"id": "a", "role": "r", "task": "t", "acceptance_criteria": ("c",), "risk_level": Risk.LOW, **fields}
    )


def evidence(**fields: Any) -> Evidence:
    """A run of tests that went well."""
    defaults: dict[str, Any] = {"kind": ReviewKind.QA, "command": ("pytest", "-q"), "exit_status": 0}
    return Evidence(**{**defaults, "output": b"3 passed", **fields})


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({}, []),
        ({"test_plan": ("pytest",)}, ["qa"]),
        ({"task_type": TaskType.IMPLEMENTATION}, ["qa"]),
        ({"task_type": TaskType.SECURITY}, ["security"]),
        ({"risk_level": Risk.HIGH}, ["security"]),
        ({"risk_level": Risk.CRITICAL, "review_gates": ReviewGates(must_run_security=False)}, ["security"]),
        ({"review_gates": ReviewGates(must_run_security=True, must_run_integration=True)}, ["security", "integration"]),
        ({"outputs": ("CONTRACTS/api.yaml",)}, ["integration"]),
    ],
)
def test_required(fields: dict[str, Any], kinds: list[str]) -> None:
    """The gates follow from the step's metadata; high risk has its own whatever the step says."""
    assert [gate.kind.value for gate in required_gates(step(**fields))] == kinds


def test_required_by_the_route() -> None:
    """What the routing policy requires joins, each gate once and with its reason."""
    gates = required_gates(step(test_plan=("pytest",)), (ReviewKind.QA, ReviewKind.MANUAL_APPROVAL))
    assert gates == (QA, Gate(ReviewKind.MANUAL_APPROVAL, "the routing policy requires it"))


def test_open() -> None:
    """A command that succeeded, with its output, opens the gate, and the result names the output's digest."""
    (result,) = judge([QA], [evidence(cases_passed=3, cases_failed=0)])
    assert (result.is_open, result.reason, result.evidence) == (True, "captured: pytest -q", (evidence().digest,))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exit_status": 1}, "pytest -q ended with exit status 1"),
        ({"exit_status": None}, "pytest -q did not end by itself"),
        ({"output": b" \n"}, "pytest -q wrote nothing, which shows nothing"),
        ({"cases_passed": 0, "cases_failed": 0}, "pytest -q reports no passed case, which shows nothing"),
        ({"cases_passed": 2, "cases_failed": 1}, "pytest -q reports 1 failed cases"),
        ({"command": ()}, "the evidence names no command"),
    ],
)
def test_closed(fields: dict[str, Any], reason: str) -> None:
    """A failure, no output or no test at all keeps it closed, also beside evidence of success."""
    (result,) = judge([QA], [evidence(), evidence(**fields)])
    assert (result.is_open, result.is_missing, result.reason) == (False, False, reason)


def test_nothing_captured() -> None:
    """Without evidence of its own kind a gate is closed, whatever opened others."""
    (result,) = judge([QA], [evidence(kind=ReviewKind.SECURITY)], [Approval(by="Ada", is_given=True)])
    assert (result.is_open, result.is_missing) == (False, True)
    assert result.reason == "nothing was captured: run a command for qa and keep its output"


@pytest.mark.parametrize(
    ("approvals", "is_open", "reason"),
    [
        ([], False, "nobody has approved it yet"),
        ([Approval(by="Ada", is_given=True)], True, "approved by Ada"),
        (
            [Approval(by="Ada", is_given=True), Approval(by="Bo", is_given=False, note="late")],
            False,
            "refused by Bo: late",
        ),
    ],
)
def test_manual_approval(approvals: list[Approval], is_open: bool, reason: str) -> None:
    """A person opens it, no command does, and a refusal counts more than an approval."""
    captured = evidence(kind=ReviewKind.MANUAL_APPROVAL)
    (result,) = judge([Gate(ReviewKind.MANUAL_APPROVAL, "")], [captured], approvals)
    assert (result.is_open, result.reason) == (is_open, reason)


def test_kept_evidence() -> None:
    """Evidence comes back from its record and output, and is refused with any other output."""
    kept = evidence(cases_passed=3)
    record = kept.record("step_a_qa.1.1.log").as_json()
    assert read_evidence(record, kept.output, "record") == kept
    for data, output in ((record, b"4 passed"), ({**record, "output_bytes": 9}, kept.output), ({}, b"")):
        with pytest.raises(EvidenceError):
            read_evidence(data, output, "record")

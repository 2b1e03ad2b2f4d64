"""Gates: which looks at a step there must be, and what opens them: output that was captured, never a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.plan.dumping import as_json
from orchestrator.plan.plan import Step
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.studiopaths import CONTRACTS
from orchestrator.plan.vocabulary import TaskType
from orchestrator.structuring import structure
from orchestrator_events.isolation import Isolation

__all__ = [
    "Approval",
    "Evidence",
    "EvidenceError",
    "EvidenceRecord",
    "Gate",
    "GateResult",
    "judge",
    "read_evidence",
    "required_gates",
]


class EvidenceError(DocumentError):
    """A record of evidence does not fit the output that was kept: it was altered, or is another's."""


@attrs.frozen
class Gate:
    """A look that there must be, and why."""

    kind: ReviewKind
    reason: str


@attrs.frozen(kw_only=True)
class Evidence:
    """A command that was really run: its exit status, and its output byte for byte as it was captured."""

    kind: ReviewKind
    command: tuple[str, ...]
    exit_status: int | None
    """None when it was killed, at a deadline for one."""
    output: bytes = attrs.field(repr=False)
    cases_passed: int | None = None
    """As a report of the command tells; None without a report."""
    cases_failed: int | None = None
    isolation: Isolation | None = None
    """What held the program in; None where nothing says so."""

    @property
    def digest(self) -> str:
        """SHA-256 of the output."""
        return sha256(self.output).hexdigest()

    def record(self, output_file: str = "") -> EvidenceRecord:
        """What is kept beside the output, which is in a file of this name."""
        return EvidenceRecord(
            kind=self.kind,
            command=self.command,
            exit_status=self.exit_status,
            output_sha256=self.digest,
            output_bytes=len(self.output),
            output_file=output_file,
            cases_passed=self.cases_passed,
            cases_failed=self.cases_failed,
            isolation=self.isolation,
        )


@attrs.frozen(kw_only=True)
class EvidenceRecord:
    """Evidence without its output, which it names by digest."""

    kind: ReviewKind
    command: tuple[str, ...]
    exit_status: int | None
    output_sha256: str
    output_bytes: int
    output_file: str = ""
    cases_passed: int | None = None
    cases_failed: int | None = None
    isolation: Isolation | None = None

    def as_json(self) -> dict[str, Any]:
        """The record as JSON data."""
        return as_json(self)


@attrs.frozen(kw_only=True)
class Approval:
    """A person's yes or no, which a manual approval asks for."""

    by: str
    is_given: bool
    note: str = ""


@attrs.frozen(kw_only=True)
class GateResult:
    """Whether a gate is open, and why or why not."""

    gate: Gate
    is_open: bool
    reason: str
    is_missing: bool = False
    """Whether it is closed because nothing was captured: the work itself has not failed."""
    evidence: tuple[str, ...] = ()
    """SHA-256 of the outputs that were looked at."""


def required_gates(step: Step, reviews: Iterable[ReviewKind] = ()) -> tuple[Gate, ...]:
    """The gates of a step, from its metadata and from what its route requires; nothing switches one off.

    QA: a test plan, or an implementation or test task. Security: the step asks, it is a security task, or its
    risk is high or critical. Integration: the step asks, or it makes a contract. Manual approval: the route asks.
    """
    found: dict[ReviewKind, str] = {}
    for kind, reason in (*reasons(step), *((kind, "the routing policy requires it") for kind in reviews)):
        found.setdefault(kind, reason)
    return tuple(Gate(kind, found[kind]) for kind in ReviewKind if kind in found)


def judge(
    gates: Iterable[Gate], evidence: Iterable[Evidence], approvals: Iterable[Approval] = ()
) -> tuple[GateResult, ...]:
    """Which gates are open.

    A gate opens when there is evidence of its kind and all of it shows success: exit status 0, output that is
    not empty, and, where a report counts cases, at least one passed and none failed. A manual approval opens
    when somebody approved and nobody refused. Claims of any model count for nothing here.
    """
    captured, answers = tuple(evidence), tuple(approvals)
    return tuple(
        judged_approval(gate, answers)
        if gate.kind is ReviewKind.MANUAL_APPROVAL
        else judged(gate, [each for each in captured if each.kind is gate.kind])
        for gate in gates
    )


def read_evidence(data: JSON, output: bytes, source: str) -> Evidence:
    """Evidence as it was kept, with its output; raises EvidenceError when they do not belong together."""
    try:
        record = structure(data, EvidenceRecord, source)
    except DocumentError as error:
        raise EvidenceError(source, error.faults) from None
    evidence = Evidence(
        kind=record.kind,
        command=record.command,
        exit_status=record.exit_status,
        output=output,
        cases_passed=record.cases_passed,
        cases_failed=record.cases_failed,
        isolation=record.isolation,
    )
    if (record.output_sha256, record.output_bytes) != (evidence.digest, len(output)):
        message = f"names an output of {record.output_bytes} bytes, {record.output_sha256!a:.70}; found another one"
        raise EvidenceError(source, (Fault("$.output_sha256", f"{message}: run the command again"),))
    return evidence


def reasons(step: Step) -> Iterator[tuple[ReviewKind, str]]:
    """What a step's metadata requires, and why."""
    if step.test_plan:
        yield ReviewKind.QA, "the step has a test plan"
    if step.task_type in (TaskType.IMPLEMENTATION, TaskType.TEST):
        yield ReviewKind.QA, f"it is a task of type {step.task_type}"
    if step.review_gates.must_run_security:
        yield ReviewKind.SECURITY, "the step asks for it"
    if step.task_type is TaskType.SECURITY:
        yield ReviewKind.SECURITY, "it is a security task"
    if step.risk_level.needs_security:
        yield ReviewKind.SECURITY, f"its risk is {step.risk_level}"
    if step.review_gates.must_run_integration:
        yield ReviewKind.INTEGRATION, "the step asks for it"
    contracts = [name for name in step.outputs if name.startswith(CONTRACTS)]
    if contracts:
        yield ReviewKind.INTEGRATION, f"it makes {contracts[0]}"


def judged(gate: Gate, evidence: list[Evidence]) -> GateResult:
    """Whether a gate that asks for a command's output is open."""
    digests = tuple(each.digest for each in evidence)
    if not evidence:
        message = f"nothing was captured: run a command for {gate.kind} and keep its output"
        return GateResult(gate=gate, is_open=False, reason=message, is_missing=True)
    against = [fault for each in evidence if (fault := objection(each))]
    if against:
        return GateResult(gate=gate, is_open=False, reason="; ".join(against), evidence=digests)
    ran = ", ".join(" ".join(each.command) for each in evidence)
    return GateResult(gate=gate, is_open=True, reason=f"captured: {ran}", evidence=digests)


def objection(evidence: Evidence) -> str:
    """Why evidence shows no success; empty when it does."""
    if not any(evidence.command):
        return "the evidence names no command"
    status = evidence.exit_status
    counts = (evidence.cases_passed, evidence.cases_failed)
    objections = (
        (status is None, "did not end by itself"),
        (bool(status), f"ended with exit status {status}"),
        (not evidence.output.strip(), "wrote nothing, which shows nothing"),
        (bool(evidence.cases_failed), f"reports {evidence.cases_failed} failed cases"),
        (counts != (None, None) and not evidence.cases_passed, "reports no passed case, which shows nothing"),
    )
    return next((f"{' '.join(evidence.command)} {fault}" for is_so, fault in objections if is_so), "")


def judged_approval(gate: Gate, approvals: tuple[Approval, ...]) -> GateResult:
    """Whether a manual approval is given."""
    refused = next((each for each in approvals if not each.is_given), None)
    if refused is not None:
        return GateResult(
            gate=gate, is_open=False, reason=f"refused by {refused.by}: {refused.note or 'no reason given'}"
        )
    if not approvals:
        return GateResult(gate=gate, is_open=False, reason="nobody has approved it yet", is_missing=True)
    return GateResult(gate=gate, is_open=True, reason=f"approved by {', '.join(each.by for each in approvals)}")

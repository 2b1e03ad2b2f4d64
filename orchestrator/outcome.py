"""How a run ended: `Passed | Exhausted`, or an error that carries the same report."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.recordedresult import RecordedResult, UsageTotals
from orchestrator_events.blob import Blob
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import Isolation
from orchestrator_events.verdict import CaseResult

__all__ = [
    "DISCLAIMER",
    "Exhausted",
    "Passed",
    "RunCancelledError",
    "RunFailedError",
    "RunInterruptedError",
    "RunReport",
    "UsageTotals",
]

DISCLAIMER = "workflow result; not a verification for deployment"


@attrs.frozen(kw_only=True, eq=False)
class RunReport(RecordedResult):
    """What every ending carries (contract 1)."""

    state: str
    """State the run is in."""
    spec_name: str
    spec_digest: str
    language: str
    generator: str
    evaluator: str
    strategy: str
    """Strategy in force, with its parameters."""
    isolation: IsolationEstablished | None
    """What held generator and evaluation in, this invocation; None when that was never found out."""
    is_pinned: bool
    """Whether the case ids that must pass were named beforehand, by the spec or by pins, not taken from the report."""
    attempts: int
    """Attempts begun."""
    generator_invocations: int
    """Generator calls made; more than attempts when a call was made again after a crash."""
    history: tuple[Attempt, ...]
    """Every judged attempt, in order."""
    closest: Attempt | None
    """Most cases passed, then fewest critical failures, then earliest; None when no candidate came."""

    @property
    def integrity(self) -> str:
        """Who held the judge in the verdict that counts: separate, cooperative or host; empty without a verdict."""
        judged = self.verdict_counted
        return "" if judged is None else judged.integrity

    @property
    def verdict_counted(self) -> Attempt | None:
        """The attempt whose verdict the outcome stands on: the last one if it conforms, else the closest."""
        last = self.history[-1] if self.history else None
        return last if last is not None and last.is_conforming else self.closest

    @property
    def errors(self) -> tuple[str, ...]:
        """Why attempts produced no candidate, in order."""
        return tuple(attempt.error for attempt in self.history if attempt.error)

    def as_json(self) -> dict[str, Any]:
        """The report as plain data. It says what it is: a workflow result, not a verification."""
        closest = self.closest
        return {
            "kind": DISCLAIMER,
            "status": self.status,
            "run": self.run_id,
            "state": self.state,
            "spec": {"name": self.spec_name, "digest": self.spec_digest},
            "language": self.language,
            "generator": self.generator,
            "evaluator": self.evaluator,
            "strategy": self.strategy,
            "isolation": None if self.isolation is None else isolation_json(self.isolation),
            "integrity": self.integrity,
            "is_pinned": self.is_pinned,
            "attempts": self.attempts,
            "generator_invocations": self.generator_invocations,
            "usage": attrs.asdict(self.usage),
            "closest": None if closest is None else attempt_json(closest),
            "history": [attempt_json(attempt) for attempt in self.history],
            "errors": list(self.errors),
            "journal_head": self.head_json(),
        }


@attrs.frozen(kw_only=True, eq=False)
class Passed(RunReport):
    """A candidate that passed every expected case, and how it came about."""

    status: ClassVar[str] = "passed"
    candidate: Candidate

    def as_json(self) -> dict[str, Any]:
        """The report with the candidate."""
        return {**super().as_json(), "candidate": candidate_json(self.candidate)}


@attrs.frozen(kw_only=True, eq=False)
class Exhausted(RunReport):
    """No candidate passed within the budget; the closest one, and what it failed."""

    status: ClassVar[str] = "exhausted"
    limit: str
    """The limit that ended the run, as the budget names it."""
    detail: str
    """The sums, in words."""

    @property
    def candidate(self) -> Candidate | None:
        """The closest candidate; None when no attempt produced one."""
        return None if self.closest is None else self.closest.candidate

    @property
    def failing(self) -> tuple[CaseResult, ...]:
        """The cases that the closest candidate failed."""
        return () if self.closest is None else self.closest.failing

    def as_json(self) -> dict[str, Any]:
        """The report with the limit and the closest candidate."""
        candidate = None if self.candidate is None else candidate_json(self.candidate)
        return {**super().as_json(), "limit": self.limit, "detail": self.detail, "candidate": candidate}


class RunEndedError(OrchestratorError):
    """A run ended without a result; `report` says what there is."""

    outcome: ClassVar[str]
    """One word for how it ended."""

    def __init__(self, reason: str, report: RunReport) -> None:
        self.reason = reason
        self.report = report
        super().__init__(f"run {report.run_id} {self.outcome} in state {report.state}: {reason}")


class RunInterruptedError(RunEndedError):
    """The run is left open and can be resumed; `__cause__` says what broke."""

    outcome: ClassVar[str] = "interrupted"


class RunCancelledError(RunEndedError):
    """The host gave the run up, or a gate denied it."""

    outcome: ClassVar[str] = "cancelled"


class RunFailedError(RunEndedError):
    """The engine, a strategy or another part of the host's configuration failed."""

    outcome: ClassVar[str] = "failed"


def isolation_json(established: IsolationEstablished) -> dict[str, Any]:
    """What held generator and evaluation in, whole."""
    return {
        "required": established.required,
        "generator": held_json(established.generator),
        "evaluator": held_json(established.evaluator),
    }


def held_json(isolation: Isolation) -> dict[str, Any]:
    """What holds one of the two, as plain data."""
    return {
        "level": isolation.level,
        "backend": isolation.backend,
        "version": isolation.version,
        "probes": [attrs.asdict(probe) for probe in isolation.probes],
        "limits": list(isolation.limits),
        "not_enforced": list(isolation.not_enforced),
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    """One attempt as plain data, texts by digest."""
    outcome = attempt.outcome
    blob: Blob | None = attempt.generated.candidate if attempt.generated is not None else None
    return {
        "attempt": attempt.number,
        "parameters": attempt.parameters,
        "seed": attempt.seed,
        "prompt": attempt.ready.prompt.digest,
        "candidate": None if blob is None else blob.digest,
        "passed": list(attempt.passed),
        "failing": [
            {"id": case.id, "status": str(case.status), "message": case.message, "severity": case.severity}
            for case in attempt.failing
        ],
        "error": attempt.error,
        "remedy": attempt.remedy,
        "answer": None if attempt.answer is None else attempt.answer.answer.digest,
        "extraction": "" if attempt.answer is None else attempt.answer.extraction,
        "generator_isolation": attempt.generator_isolation,
        "evaluator_isolation": attempt.evaluator_isolation,
        "integrity": attempt.integrity,
        "reused_from": getattr(outcome, "reused_from", 0),
        "charge": None if attempt.charge is None else attrs.asdict(attempt.charge),
    }


def candidate_json(candidate: Candidate) -> dict[str, Any]:
    """A candidate as plain data."""
    shown: dict[str, Any] = {"files": dict(candidate.files)} if candidate.files else {"text": candidate.text}
    return {"sha256": candidate.digest, **shown}

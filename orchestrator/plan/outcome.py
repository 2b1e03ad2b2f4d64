"""How an invocation of a plan ended: `PlanCompleted | PlanBlocked | PlanExhausted`, a standing, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import attrs

from orchestrator.plan.plan import Plan
from orchestrator.recordedresult import RecordedResult
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "PlanBlockedResult",
    "PlanCompletedResult",
    "PlanEndedError",
    "PlanExhaustedResult",
    "PlanFailedError",
    "PlanInterruptedError",
    "PlanReport",
    "PlanResult",
    "StepStanding",
]


KIND = "plan result; not a verification for deployment"


@attrs.frozen(kw_only=True)
class StepStanding:
    """Where a step is."""

    id: str
    state: str
    model: str = ""
    """Who worked on it last."""
    reviewer: str = ""
    executions: int = 0
    """Fixes included."""
    failures: int = 0
    reason: str = ""
    """Why it is blocked, or failed."""
    followup: str = ""
    """The step that carries the conditions of its approval."""
    duration_us: int = 0


@attrs.frozen(kw_only=True, eq=False)
class PlanReport(RecordedResult):
    """What every ending carries, and what `status` gives."""

    status: ClassVar[str] = "standing"
    plan: Plan
    """With the follow-up steps that approvals added."""
    state: str
    """Where the plan is in its lifecycle."""
    digest: str
    """Of the plan as it was drafted or amended last."""
    steps: tuple[StepStanding, ...]
    open_risks: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    """Titles of decision records."""
    next_command: str = ""
    """What to do next; empty when nothing is left to do."""

    @property
    def by_id(self) -> Mapping[str, StepStanding]:
        """The steps by their ids."""
        return {step.id: step for step in self.steps}

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "kind": KIND,
            "status": self.status,
            "run": self.run_id,
            "plan": self.plan.plan_id,
            "lifecycle": self.state,
            "digest": self.digest,
            "steps": [attrs.asdict(step) for step in self.steps],
            "open_risks": list(self.open_risks),
            "decisions": list(self.decisions),
            "next": self.next_command,
            "usage": attrs.asdict(self.usage),
            "journal_head": self.head_json(),
        }


@attrs.frozen(kw_only=True, eq=False)
class PlanCompletedResult(PlanReport):
    """Every step is completed and the rollout is prepared."""

    status: ClassVar[str] = "completed"
    release: tuple[str, ...] = ()
    """Release notes, rollout and rollback plan, below the studio."""
    missing: tuple[str, ...] = ()
    """What a deployment still lacks."""

    def as_json(self) -> dict[str, Any]:
        """The report with the release."""
        return {**super().as_json(), "release": list(self.release), "missing": list(self.missing)}


@attrs.frozen(kw_only=True, eq=False)
class PlanBlockedResult(PlanReport):
    """Nothing more can be done until the plan is amended: a step is blocked or has failed."""

    status: ClassVar[str] = "blocked"
    blocked: Mapping[str, str]
    """The steps, each with the reason."""

    def as_json(self) -> dict[str, Any]:
        """The report with the reasons."""
        return {**super().as_json(), "blocked": dict(self.blocked)}


@attrs.frozen(kw_only=True, eq=False)
class PlanExhaustedResult(PlanReport):
    """A limit of the budget is reached; with other limits the plan goes on."""

    status: ClassVar[str] = "exhausted"
    limit: str
    detail: str

    def as_json(self) -> dict[str, Any]:
        """The report with the limit."""
        return {**super().as_json(), "limit": self.limit, "detail": self.detail}


PlanResult: TypeAlias = PlanCompletedResult | PlanBlockedResult | PlanExhaustedResult


class PlanEndedError(OrchestratorError):
    """An invocation ended without a result; `report` says what there is."""

    outcome: ClassVar[str]
    """One word for how it ended."""

    def __init__(self, reason: str, report: PlanReport) -> None:
        self.reason = reason
        self.report = report
        super().__init__(f"plan {report.plan.plan_id} {self.outcome} ({report.state}): {reason}")


class PlanInterruptedError(PlanEndedError):
    """The plan is left open and can be resumed; `__cause__` says what broke."""

    outcome: ClassVar[str] = "interrupted"


class PlanFailedError(PlanEndedError):
    """The engine or the host's configuration failed; the plan can be resumed where it was."""

    outcome: ClassVar[str] = "failed"

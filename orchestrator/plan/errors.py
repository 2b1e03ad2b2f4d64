"""What refuses or interrupts a command on a plan; light to import, so that whoever only names them stays so.

OrchestratorError
├── PlanStateError, PlanChangedError     the plan is elsewhere in its life, or another than was locked
├── PlanNotReadyError                    it cannot be executed as configured
├── MissingArtifactsError                what it needs is not in the studio
├── AmendmentError                       it cannot be amended like that
├── RetryError                           a step cannot be tried again as the plan is
├── CheckError                           a gate's check cannot be run
├── RootFileError                        a file of the studio cannot be read or written
└── DocumentError ── ReviewError         an answer is no review
InterruptionError ── UnavailableError    a model cannot be had now
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from orchestrator.errors import DocumentError
from orchestrator.generating import InterruptionError
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "AmendmentError",
    "CheckError",
    "MissingArtifactsError",
    "PlanChangedError",
    "PlanNotReadyError",
    "PlanStateError",
    "RetryError",
    "ReviewError",
    "RootFileError",
    "UnavailableError",
]


class PlanStateError(OrchestratorError):
    """A command does not fit the plan's lifecycle; `next_command` is the one that does."""

    def __init__(self, plan_id: str, state: str, command: str, next_command: str) -> None:
        self.plan_id = plan_id
        self.state = state
        self.next_command = next_command
        remedy = f"`{next_command}` comes next" if next_command else "nothing is left to do"
        super().__init__(f"plan {plan_id} is {state}, so `{command}` cannot be done: {remedy}")


class PlanChangedError(OrchestratorError):
    """The plan is another than the one that was reviewed or locked; `recorded` and `found` are their digests."""

    def __init__(self, plan_id: str, state: str, recorded: str, found: str) -> None:
        self.plan_id = plan_id
        self.recorded = recorded
        self.found = found
        super().__init__(
            f"plan {plan_id} is {state} with the digest {recorded}, and the file now has {found}: "
            "restore the file, or record the change with `plan amend`"
        )


class PlanNotReadyError(OrchestratorError):
    """A plan cannot be executed as configured; `faults` lists everything that is missing. Nothing was spent."""

    def __init__(self, plan_id: str, faults: tuple[str, ...]) -> None:
        self.plan_id = plan_id
        self.faults = faults
        super().__init__(
            "\n".join([f"plan {plan_id} cannot be executed as configured:", *(f"  {each}" for each in faults)])
        )


class MissingArtifactsError(OrchestratorError):
    """Artifacts are not there or cannot be read; `missing` has each with the reason. Nothing was started."""

    def __init__(self, root: Path, missing: Mapping[str, str]) -> None:
        self.missing = dict(missing)
        listed = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        super().__init__(f"{len(missing)} artifacts must be in {root} first: {listed}")


class AmendmentError(OrchestratorError):
    """An amendment does not fit the plan it is applied to, or changes what is completed; `step_id` names where."""

    def __init__(self, reason: str, step_id: str = "") -> None:
        self.step_id = step_id
        super().__init__(reason)


class RetryError(OrchestratorError):
    """A step cannot be tried again under the plan as it is; `step_id` names it. Nothing was recorded."""

    def __init__(self, reason: str, step_id: str = "") -> None:
        self.step_id = step_id
        super().__init__(reason)


class ReviewError(DocumentError):
    """A reviewer's answer is no review; `faults` has one reason for each fault. It approves nothing."""


class CheckError(OrchestratorError):
    """A check of a gate cannot be run, which is nobody's failure: `kind` and `step_id` say which, and where."""

    def __init__(self, kind: str, step_id: str, reason: str) -> None:
        self.kind = kind
        self.step_id = step_id
        super().__init__(
            f"the {kind} check of step {step_id} cannot be run: {reason}: mend its command or what it needs"
        )


class RootFileError(OrchestratorError):
    """A file below the root cannot be read or written; `path` names it relative to the root."""

    def __init__(self, root: Path, path: str, reason: str) -> None:
        self.root = root
        self.path = path
        place = f"{root}/{path:.300}" if path else f"{root}"
        super().__init__(f"{place}: {reason}".encode("ascii", "backslashreplace").decode())


class UnavailableError(InterruptionError):
    """The model cannot be had now; the work is left open, so that it can be taken up again."""

"""What stands in the records of plans and steps, read back, and the words they are written in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.nesting import child_id_of
from orchestrator.plan.gates import Approval, Evidence, read_evidence
from orchestrator.plan.review import Review, ReviewStatus
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.steprun import StepRun
from orchestrator.structuring import structure
from orchestrator_events.blob import Blob
from orchestrator_states.agent import AGENT
from orchestrator_states.run import RUN

__all__ = [
    "MAKING",
    "MOST_FIXES",
    "OUTCOMES",
    "approvals_of",
    "evidence_in",
    "lifecycle_of",
    "review_in",
    "reviews_of",
    "step_run_id",
    "text_of",
]

MOST_FIXES: Final = 3
"""How often a step is fixed before it has failed (contract 5: retry up to 3 times)."""
MAKING: Final = ("primary", "secondary", "post-pass")
"""Purposes of the work that makes a step's output: what comes of it is a candidate."""
OUTCOMES: Final[Mapping[ReviewStatus, str]] = MappingProxyType(
    {
        ReviewStatus.APPROVED: "approved",
        ReviewStatus.APPROVED_WITH_CONDITIONS: "approved",
        ReviewStatus.CHANGES_REQUESTED: "changes_requested",
        ReviewStatus.BLOCKED: "blocked",
    }
)
"""What a review does to its step."""


def step_run_id(plan_run_id: str, step_id: str) -> str:
    """The run id of a step."""
    return child_id_of(f"{plan_run_id}:{step_id}")


def lifecycle_of(executor: str) -> str:
    """The lifecycle of the run that does a step's work."""
    return RUN.name if executor == "conformance" else AGENT.name


def review_in(blob: Blob) -> Review:
    """A recorded review."""
    return structure(json.loads(text_of(blob)), Review, "a recorded review")


def evidence_in(blob: Blob) -> tuple[Evidence, ...]:
    """The evidence that a record holds; EvidenceError where output and digest do not belong together."""
    return tuple(
        read_evidence(
            {key: value for key, value in each.items() if key != "output"}, each["output"].encode(), "recorded evidence"
        )
        for each in json.loads(text_of(blob))
    )


def approvals_of(run: StepRun) -> list[Approval]:
    """What a person said of the last output."""
    return [Approval(by="the approver", is_given=each.is_approved, note=each.answer) for each in run.approvals]


def reviews_of(run: StepRun) -> tuple[ReviewKind, ...]:
    """Looks that the routing policy requires."""
    return () if run.route is None else tuple(ReviewKind(kind) for kind in run.route.reviews)


def text_of(blob: Blob) -> str:
    """What a record holds, as text."""
    return blob.data.decode() if blob.text is None else blob.text

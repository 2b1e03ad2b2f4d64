"""What the Release Manager gets at the end of a plan: release notes, rollout plan, rollback plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from orchestrator.exports.inertmarkdown import span
from orchestrator.plan.gates import GateResult, required_gates
from orchestrator.plan.ordering import ordered, parallel_sets
from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.review import Review, ReviewStatus
from orchestrator.plan.vocabulary import TaskType

__all__ = ["Release", "StepOutcome", "prepare_release"]

LONGEST: Final = 2_000
HARMLESS: Final = (TaskType.PLANNING, TaskType.REVIEW, TaskType.TEST)
"""Kinds of task that change nothing which is rolled out, so nothing of theirs is rolled back."""
TRIGGERS: Final = (
    "Roll back at once: data is damaged or exposed, or the service is down.",
    "Roll back within the hour: error rate above 5 %, or 95th percentile of response times above 2 s.",
    "Decide: any other fault that reaches users; write down who decided.",
)


@attrs.frozen(kw_only=True)
class StepOutcome:
    """How a step ended."""

    step_id: str
    is_completed: bool
    model: str = ""
    """Who did it."""
    attempts: int = 1
    review: Review | None = None
    gates: tuple[GateResult, ...] = ()
    output_path: str = ""
    met_by: str = ""
    """The follow-up step that met the conditions of its approval; empty where none did."""

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of its approval."""
        return () if self.review is None else self.review.conditions


@attrs.frozen(kw_only=True)
class Release:
    """Three Markdown documents, and what is missing before anything may be rolled out."""

    notes: str
    rollout: str
    rollback: str
    missing: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether nothing is missing; without that the rollout plan has no steps."""
        return not self.missing


def prepare_release(plan: Plan, outcomes: Iterable[StepOutcome]) -> Release:
    """The release of a plan: never one that could be rolled out without a rollback plan.

    Texts of reviewers stand in the documents as code, so that they stay text.
    """
    given = {outcome.step_id: outcome for outcome in outcomes}
    found = {step.id: given[step.id] for step in ordered(plan) if step.id in given}  # not as they happened to end
    missing = tuple(gaps(plan, found))
    return Release(
        notes=page(f"Release notes: {span(plan.goal, 120)}", note_lines(plan, found)),
        rollout=page("Rollout plan", rollout_lines(plan, found, missing)),
        rollback=page("Rollback plan", rollback_lines(plan)),
        missing=missing,
    )


def page(title: str, lines: Iterator[str]) -> str:
    """A document."""
    return "\n".join([f"# {title}", "", *lines]) + "\n"


def gaps(plan: Plan, outcomes: Mapping[str, StepOutcome]) -> Iterator[str]:
    """What is missing, in order of the steps."""
    for step in ordered(plan):
        outcome = outcomes.get(step.id)
        if outcome is None or not outcome.is_completed:
            yield f"step {step.id} is not completed"
            continue
        if outcome.review is None or not outcome.review.status.is_approval:
            yield f"step {step.id} has no approving review"
        if not outcome.met_by:
            yield from (
                f"step {step.id} was approved on a condition that is not met: {each}" for each in outcome.conditions
            )
        looked_at = {gate.gate.kind for gate in outcome.gates}
        for needed in required_gates(step):
            if needed.kind not in looked_at:
                yield f"step {step.id}: the {needed.kind} gate was never looked at, and {needed.reason}"
        for gate in outcome.gates:
            if not gate.is_open:
                yield f"step {step.id}: the {gate.gate.kind} gate is closed, {gate.reason}"
        if needs_rollback(step) and not step.rollback_plan.strip():
            yield f"step {step.id} has no rollback plan"


def needs_rollback(step: Step) -> bool:
    """Whether there is something of a step to undo."""
    return step.task_type not in HARMLESS


def note_lines(plan: Plan, outcomes: Mapping[str, StepOutcome]) -> Iterator[str]:
    """What was done, by whom, on what evidence, and what is still to do."""
    yield f"Plan {plan.plan_id}, {plan.digest}."
    yield from ("", "## Changes", "")
    for step in ordered(plan):
        yield f"- {step.id}: {span(step.title or step.task)}{done_by(outcomes.get(step.id))}"
    reviews = [(name, each.review) for name, each in outcomes.items() if each.review is not None]
    kept = [
        (f"{name}, by {each.met_by}", text)
        for name, each in outcomes.items()
        if each.met_by
        for text in each.conditions
    ]
    yield from section("Conditions of approval that were met", kept)
    unmet = [(name, text) for name, each in outcomes.items() if not each.met_by for text in each.conditions]
    yield from section("Conditions of approval, to be followed up", unmet)
    yield from section(
        "Risks that reviewers noted", [(name, text) for name, each in reviews for text in each.diff_risk_notes]
    )
    yield from ("", "## Evidence", "")
    lines = [
        f"- {name}: {each.gate.kind} {'open' if each.is_open else 'closed'}, {span(each.reason)}"
        for name, outcome in outcomes.items()
        for each in outcome.gates
    ]
    yield from lines or ["None was captured."]


def done_by(outcome: StepOutcome | None) -> str:
    """Who did a step, in how many attempts, and what the reviewer said."""
    if outcome is None or not outcome.is_completed:
        return " (not completed)"
    by = f", by {span(outcome.model)}" if outcome.model else ""
    status = outcome.review.status if outcome.review else "not reviewed"
    followed = ", with conditions" if status is ReviewStatus.APPROVED_WITH_CONDITIONS else ""
    shown = "approved" if followed else str(status).replace("_", " ")
    return f"{by}, attempt {outcome.attempts}, {shown}{followed}"


def section(title: str, entries: list[tuple[str, str]]) -> Iterator[str]:
    """A heading and a list of what was said of steps."""
    yield from ("", f"## {title}", "")
    yield from [f"- {name}: {span(text, LONGEST)}" for name, text in entries] or ["None."]


def rollout_lines(plan: Plan, outcomes: Mapping[str, StepOutcome], missing: tuple[str, ...]) -> Iterator[str]:
    """The steps in groups that can go out together; or only what is missing."""
    if missing:
        yield from ("**Not ready: do not roll out.** Missing:", "")
        yield from (f"- {span(text, LONGEST)}" for text in missing)
        return
    yield "Roll out in this order; do not begin a group before the one above it is confirmed."
    groups = [[step for step in group if needs_rollback(step)] for group in parallel_sets(plan)]
    for number, group in enumerate(filter(None, groups), start=1):
        yield from ("", f"## Group {number}", "")
        for step in group:
            where = span(outcomes[step.id].output_path)
            title = span(step.title or step.task)
            yield f"- {step.id} ({step.risk_level} risk): {title}{f', {where}' if where else ''}"
            yield from (f"  - confirm: {span(each)}" for each in (*step.test_plan, *step.acceptance_criteria))


def rollback_lines(plan: Plan) -> Iterator[str]:
    """When to roll back, and each step's plan, the last step first."""
    yield from ("## When", "")
    yield from (f"- {line}" for line in TRIGGERS)
    yield from ("", "## How, in this order", "")
    steps = [step for step in reversed(ordered(plan)) if needs_rollback(step)]
    for number, step in enumerate(steps, start=1):
        how = span(step.rollback_plan, LONGEST) or "**missing: write one before anything is rolled out**"
        yield f"{number}. {step.id}: {how}"
    if not steps:
        yield "Nothing that this plan made is rolled out."

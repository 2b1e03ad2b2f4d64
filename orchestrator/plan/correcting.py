"""The correction loop: what comes after an execution that failed (contract 5).

A failure of the implementer is an execution that gave no usable output, a gate that captured output closed, or a
review that requests changes. After each one a Fix Step follows, with the same role and all that was said; at most
three of them. From the second failure on the routing policy hands it to a stronger model, with a refactor task.
What a reviewer cannot say, a gate that could not run, a refusal and an interruption are no failures.
"""

from __future__ import annotations

from orchestrator.plan.gates import Evidence, GateResult
from orchestrator.plan.outputs import shown, told
from orchestrator.plan.recorded import MOST_FIXES, review_in, text_of
from orchestrator.plan.review import Review
from orchestrator.plan.routing import Route, situation_of
from orchestrator.plan.steprompt import Input
from orchestrator.plan.verifying import evidence_of, notes_of, results_of
from orchestrator.plan.workshop import Workshop
from orchestrator.promptfences import Part
from orchestrator_events.blob import Blob
from orchestrator_events.plan import (
    StepEscalated,
    StepFailed,
    StepRouted,
    StepStarted,
)

__all__ = ["correct", "feedback", "routed", "started"]


async def correct(it: Workshop) -> None:
    """Begin a fix, by a stronger model if need be; or give the step up."""
    run, step = it.run, it.run.step
    if run.failures > MOST_FIXES:
        return it.fire(StepFailed(step=step.id, reason=f"{MOST_FIXES} fixes failed; the last time: {why(it)}"))
    route = it.parts.policy.route(situation_of(step, run.failures), step.model)
    prompt = prompt_of(it, route)
    it.fire(routed(it, route))
    if route.is_escalated and run.escalated is None:
        it.fire(StepEscalated(step=step.id, failures=run.failures, model=route.primary))
    return it.fire(started(it, route, prompt))


def started(it: Workshop, route: Route, prompt: str) -> StepStarted:
    """The next execution of the step, as it is recorded."""
    run, step = it.run, it.run.step
    return StepStarted(
        step=step.id,
        number=run.number + 1,
        model=route.primary,
        role=step.role,
        executor=str(step.executor),
        prompt=Blob(prompt),
    )


def routed(it: Workshop, route: Route) -> StepRouted:
    """The route as it is recorded."""
    return StepRouted(
        step=it.run.step.id,
        rule=route.rule,
        reason=route.reason,
        primary=route.primary,
        secondary=route.secondary,
        reviewer=route.reviewer,
        mode=str(route.mode),
        reviews=tuple(str(kind) for kind in route.reviews),
        failures=it.run.failures,
    )


def prompt_of(it: Workshop, route: Route) -> str:
    """The prompt of a fix, or of a refactor where it was escalated."""
    run, prompter, step = it.run, it.parts.prompter, told(it.run.step)
    inputs, previous, review = it.inputs(), made_before(it), asked_for(it)
    gates, evidence, notes = said(it)
    if route.is_escalated:
        return prompter.escalation(
            it.plan,
            step,
            inputs,
            previous=previous,
            failures=run.failures,
            review=review,
            gates=gates,
            evidence=evidence,
            notes=notes,
        )
    return prompter.fix(
        it.plan,
        step,
        inputs,
        previous=previous,
        review=review,
        gates=gates,
        evidence=evidence,
        notes=notes,
        attempt=run.failures + 1,
    )


def feedback(it: Workshop) -> list[Part]:
    """All that was said of the last execution; nothing when none has failed."""
    return it.parts.prompter.feedback(made_before(it), asked_for(it), *said(it)) if it.run.failures else []


def made_before(it: Workshop) -> str:
    """The last output, and that the last execution gave none."""
    run = it.run
    previous = "" if run.executed is None else shown(text_of(run.executed.output), run.executed.form)
    if run.faltered is not None:
        previous = f"{previous}\n\n(The last attempt gave no usable output: {run.faltered.error})".strip()
    return previous


def asked_for(it: Workshop) -> Review | None:
    """The review that the last output had."""
    return None if it.run.reviewed is None else review_in(it.run.reviewed.review)


def said(it: Workshop) -> tuple[tuple[GateResult, ...], tuple[Evidence, ...], tuple[Input, ...]]:
    """What the gates said of the last output, what they captured, and what agents noted; nothing before they looked."""
    run = it.run
    return ((), (), ()) if run.verified is None else (results_of(run), evidence_of(run), notes_of(run))


def why(it: Workshop) -> str:
    """The last failure in words."""
    run = it.run
    if run.faltered is not None:
        return run.faltered.error
    if run.reviewed is not None:
        return "; ".join(review_in(run.reviewed.review).required_fixes)
    return "" if run.verified is None else f"closed: {', '.join(run.verified.failed)}"

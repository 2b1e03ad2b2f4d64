"""Reviewing a step: the reviewer gets output, artifacts and evidence, and what it answers is checked (contract 5)."""

from __future__ import annotations

import json

from orchestrator.plan.contextbus import MissingArtifactsError
from orchestrator.plan.executing import publish
from orchestrator.plan.outputs import artifacts_of, shown
from orchestrator.plan.recorded import OUTCOMES, text_of
from orchestrator.plan.review import Review, ReviewError, ReviewStatus, read_review
from orchestrator.plan.steprompt import Input
from orchestrator.plan.verifying import evidence_of, notes_of, results_of
from orchestrator.plan.workshop import Task, Workshop
from orchestrator_events.blob import Blob
from orchestrator_events.plan import StepBlocked, StepReviewed

__all__ = ["review"]

MOST_READINGS = 3
"""How often a reviewer is asked before a step is blocked because its answers are no reviews."""


async def review(it: Workshop) -> None:
    """Have the reviewer decide; an answer that is no review approves nothing and is asked for again."""
    run = it.run
    assert run.route is not None
    prompt = prompt_of(it)
    faults = ""
    for attempt in range(1, MOST_READINGS + 1):
        again = f"\n\nYour last answer was no review:\n{faults}\nAnswer with the JSON object alone.\n" if faults else ""
        work = await it.supervisor.effect(
            it.worked(
                Task(
                    purpose="review",
                    model=run.route.reviewer,
                    role="Reviewer",
                    prompt=prompt + again,
                    attempt=attempt,
                    again=faults,
                )
            ),
            None,
        )
        try:
            answer = "" if work.output is None else text_of(work.output)
            found = read_review(answer, step_id=run.step.id, risk=run.step.risk_level)
        except ReviewError as error:
            faults = work.error or str(error)
            continue
        return decide(it, found)
    return it.fire(StepBlocked(step=run.step.id, reason=f"{run.route.reviewer} gave no review: {faults}"))


def decide(it: Workshop, found: Review) -> None:
    """Fire what the reviewer decided; what is approved is published as reviewed."""
    run = it.run
    assert run.route is not None
    it.fire(
        StepReviewed(
            step=run.step.id,
            outcome=OUTCOMES[found.status],
            review=Blob(json.dumps(found.as_json(), ensure_ascii=False, sort_keys=True)),
            reviewer=run.route.reviewer,
            has_conditions=found.status is ReviewStatus.APPROVED_WITH_CONDITIONS,
        )
    )
    if found.status.is_approval:
        publish(it, "reviewed")


def prompt_of(it: Workshop) -> str:
    """What the reviewer is shown: inputs, output, artifacts, what agents said, and what the gates captured."""
    run = it.run
    assert run.executed is not None
    try:
        inputs = list(it.inputs())
    except MissingArtifactsError:  # gone since the step began; the output is judged all the same
        inputs = []
    made = artifacts_of(run) if len(run.step.outputs) > 1 else {}
    inputs += [Input(name=name, text=text, origin="this step", is_reviewed=False) for name, text in made.items()]
    inputs += notes_of(run)
    output = shown(text_of(run.executed.output), run.executed.form)
    return it.parts.prompter.review(
        it.plan, run.step, inputs, output=output, gates=results_of(run), evidence=evidence_of(run)
    )

"""The context bus as the journal tells it: what records say happened is laid into the studio, never the other way.

Files are written after the records that name them are committed; when a plan is taken up again, all of them are laid
anew from the journal, so that a studio that was cut off, or lost, is as it would have been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.decisionrecords import DecisionRecord
from orchestrator.plan.outputs import made_by, shown
from orchestrator.plan.plan import Step
from orchestrator.plan.planrun import PlanRun, read_step
from orchestrator.plan.recorded import evidence_in, review_in, text_of
from orchestrator.plan.steprompt import Input
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.studiostate import DecisionEntry, StudioState
from orchestrator_events.blob import Blob
from orchestrator_events.execution import ExecutionStart, SecretFound
from orchestrator_events.plan import (
    ArtifactPublished,
    DecisionRecorded,
    StepBlocked,
    StepCompared,
    StepExecuted,
    StepFailed,
    StepFaltered,
    StepReviewed,
    StepStarted,
    StepVerified,
)
from orchestrator_events.record import Record
from orchestrator_states.plan import PlanState

__all__ = ["Studio"]

PAIR: Final = ("primary", "secondary")
"""Purposes of the two that are compared, in the order of their candidates."""


@attrs.define(eq=False)
class Studio:
    """A plan's studio; one plan at a time writes to it."""

    bus: ContextBus
    run: PlanRun
    state: StudioState = attrs.field(init=False)
    texts: dict[str, str] = attrs.Factory(dict[str, str])
    """Files that steps made, by name, the newest of each."""
    numbers: dict[str, int] = attrs.Factory(dict[str, int])
    """Of each step, the number of its execution under way."""
    steps: dict[str, Step] = attrs.Factory(dict[str, Step])
    """Of each step, what the plan said of it when it was executed."""
    conditions: dict[str, tuple[str, ...]] = attrs.Factory(dict[str, tuple[str, ...]])
    """Conditions of each step's approval, which stay open until its follow-up is completed."""
    risks: dict[str, tuple[str, ...]] = attrs.Factory(dict[str, tuple[str, ...]])
    """Open risks that each step leaves, as its last review or its block says."""

    def __attrs_post_init__(self) -> None:
        self.state = StudioState()

    def rebuild(self, steps: Iterable[StepRun]) -> None:
        """Lay out the files that the journal tells of, whatever the studio holds; `write` is what tells the state."""
        for record in self.run.records:
            self.plan_record(record)
        told = [(record, step) for step in steps for record in step.records]
        for record, step in sorted(told, key=lambda each: each[0].at):
            self.record(step, record)

    def take(self, step: StepRun, records: Iterable[Record]) -> None:
        """Lay out what a step's records say, and the state of it."""
        changes = [self.record(step, record) for record in records]
        if any(changes):
            self.write()

    def take_plan(self, records: Iterable[Record]) -> None:
        """Lay out what the plan's own records say, and the state of it."""
        for record in records:
            self.plan_record(record)
        self.write()

    def inputs(self, step: Step) -> tuple[Input, ...]:
        """A step's inputs; MissingArtifactsError with all that are not there."""
        return self.bus.resolve(self.state, step.inputs)

    def files(self) -> Mapping[str, str]:
        """What steps made so far, by name."""
        return dict(self.texts)

    def place(self, run: StepRun, name: str) -> str:
        """Where an artifact of the step's last execution lies, below the studio."""
        return f"{self.bus.prefix(self.run.run_id, run.step.id)}_artifacts/{run.number}/{name}"

    def decided(self, record: DecisionRecord) -> DecisionRecorded:
        """Write a decision record, which can be repeated after a crash, and give the fact of it; without secrets."""
        secrets = self.run.secrets
        if secrets is not None:
            record = DecisionRecord(
                title=secrets.redact(record.title),
                context=secrets.redact(record.context),
                decision=secrets.redact(record.decision),
                consequences=secrets.redact(record.consequences),
                status=record.status,
            )
        known = self.bus.decide(StudioState(), record).decisions[0]
        return DecisionRecorded(title=record.title, record=Blob(record.page(known.number)), path=known.path)

    def write(self) -> None:
        """Write the state under the next revision."""
        run = self.run
        lifecycle = run.state if run.state not in (PlanState.NEW, PlanState.ABANDONED) else "idle"
        state = attrs.evolve(
            self.state,
            revision=self.bus.read_state().revision,
            plan_id=run.current.plan_id,
            plan_digest=run.current.digest,
            lifecycle=lifecycle,  # type: ignore[arg-type]  # one of the states above
            run_id=run.run_id,
            completed_steps=tuple(run.completed),
            open_risks=self.open_risks,
        )
        self.state = self.bus.write_state(state)

    @property
    def open_risks(self) -> tuple[str, ...]:
        """What is open, each once."""
        unmet = [
            texts
            for step_id, texts in self.conditions.items()
            if self.run.followed.get(step_id) not in self.run.completed
        ]
        return tuple(dict.fromkeys(text for texts in (*self.risks.values(), *unmet) for text in texts))

    def plan_record(self, record: Record) -> None:
        """What one record of the plan changes."""
        event = record.event
        if isinstance(event, DecisionRecorded):
            self.decision(event)
        elif isinstance(event, ArtifactPublished):
            self.bus.files.write(event.path, event.content.data)

    def record(self, step: StepRun, record: Record) -> bool:
        """What one record of a step changes; whether anything."""
        event, step_id = record.event, step.step.id
        number = self.numbers.get(step_id, 1)
        match event:
            case ExecutionStart():
                self.steps[step_id] = read_step(event.prompt)
                return False
            case StepStarted():
                self.numbers[step_id] = event.number
                return False
            case StepCompared():
                self.compared(step, event, number)
            case StepExecuted():
                self.executed(step_id, event, number)
            case StepVerified():
                self.verified(step_id, event, number)
            case StepReviewed():
                self.reviewed(step_id, event, number)
            case StepFaltered():
                self.state = self.state.failing(step_id, event.error)
            case StepBlocked() | StepFailed():
                self.risks[step_id] = (f"step {step_id}: {event.reason}",)
            case DecisionRecorded():
                self.decision(event)
            case _:
                return False
        return True

    def compared(self, step: StepRun, event: StepCompared, number: int) -> None:
        """What was not chosen lies beside what was."""
        work = step.work_of(PAIR[1 - event.chosen], number)
        if work is None or work.finished is None or work.finished.output is None:
            return
        output = work.finished.output
        found = [each.event for each in step.records if isinstance(each.event, SecretFound)]
        if not any(each.is_refused and each.place.startswith(output.digest) for each in found):
            self.bus.save_other(self.run.run_id, step.step.id, number, shown(text_of(output), work.finished.form))

    def executed(self, step_id: str, event: StepExecuted, number: int) -> None:
        """The output and the files in it are there at once, unreviewed."""
        output, run_id = text_of(event.output), self.run.run_id
        self.bus.save_output(run_id, step_id, number, shown(output, event.form))
        made = made_by(self.steps[step_id], output, event.form)
        self.state = self.bus.publish(self.state, run_id, step_id, number, made)
        if not made:
            self.state = self.bus.publish_output(self.state, run_id, step_id, number)
        self.texts.update(made)

    def verified(self, step_id: str, event: StepVerified, number: int) -> None:
        """What was captured lies beside the output."""
        for place, evidence in enumerate(evidence_in(event.evidence), 1):
            self.bus.save_evidence(self.run.run_id, step_id, number, evidence, place)
        if not event.has_passed:
            self.state = self.state.failing(step_id, f"closed gates: {', '.join(event.failed)}")

    def reviewed(self, step_id: str, event: StepReviewed, number: int) -> None:
        """A review lies beside the output; what is approved counts as reviewed from here."""
        review = review_in(event.review)
        self.bus.save_review(self.run.run_id, step_id, number, review)
        self.risks[step_id] = tuple(f"step {step_id}: {text}" for text in review.diff_risk_notes)
        self.conditions[step_id] = tuple(f"step {step_id}: {text}" for text in review.conditions)
        if event.outcome == "approved":
            self.state = self.bus.accept(self.state, step_id)
        elif event.outcome == "changes_requested":
            self.state = self.state.failing(step_id, "; ".join(review.required_fixes))

    def decision(self, event: DecisionRecorded) -> None:
        """A decision record, at its place."""
        if not any(each.path == event.path for each in self.state.decisions):
            number = int(event.path.rpartition("/")[2].split("-")[1])
            self.bus.files.create(event.path, event.record.data)
            entry = DecisionEntry(number=number, title=event.title, status="accepted", path=event.path)
            self.state = attrs.evolve(self.state, decisions=(*self.state.decisions, entry))

"""Workflows: every step's record follows from those before it, so that the state can be told from the journal alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from orchestrator.workflow.cascade import CascadeRule, failures_in_window
from orchestrator.workflow.components.port import call_key
from orchestrator.workflow.merging import initial_state, merged, same, summary_of, updates_after
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statetext import written
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Reservation
from orchestrator_events.record import Record
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    DecisionTakenByUser,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    StateMerged,
    StateRead,
    StateWritten,
    SubagentFinished,
    SubagentSpawned,
    SummaryReported,
)

__all__ = ["WorkflowSteps"]

STAMP = "last_updated"
"""When a state was merged is the driver's to say; everything else in it follows."""


@attrs.define(eq=False)
class WorkflowSteps:
    """Follows the steps of the loop (contract 4)."""

    begun_at: int = 0
    name: str = attrs.field(default="workflow", init=False)

    def look(self, run: WorkflowRun, record: Record) -> Iterator[str]:
        """What a record says that does not follow from those before it."""
        self.begun_at = self.begun_at or record.at
        match record.event:
            case PhaseStarted() as event:
                yield from begins(run, event)
            case PhaseFinished() | PhaseFailed() as event:
                yield from ends(run, event)
            case StateMerged() as event:
                yield from merges(run, event)
            case StateRead() | StateWritten() as event:
                yield from self.states(run, event)
            case SummaryReported() as event:
                yield from summarises(run, event)
            case CascadeDetected() as event:
                yield from cascades(run, event)
            case SubagentSpawned() | SubagentFinished() as event:
                yield from accounts(run, event)
            case DecisionNeeded() | DecisionTakenByUser() as event:
                yield from decides(run, event)
            case _:
                pass

    def end(self, run: WorkflowRun) -> Iterator[str]:
        """A workflow that is done and does not say so."""
        if run.state == "done" and run.current.get("phase") != "done":
            yield f"is done, but its state is in phase {run.current.get('phase')!r:.80}"

    def states(self, run: WorkflowRun, event: StateRead | StateWritten) -> Iterator[str]:
        """A state that is read or written is the one that the journal had, or the initial one."""
        known = run.state_text
        if not known:
            first = next(str(row.target) for row in run.phases.table.rows if run.phases.table.initial in row.sources)
            known = written(initial_state(first, self.begun_at, run.parameters))
        if told(event.state) != known:
            yield "is another state than the one that was merged"


def begins(run: WorkflowRun, event: PhaseStarted) -> Iterator[str]:
    """The phase of the domain's machine, numbered without gaps."""
    if event.phase != run.phase:
        yield f"begins phase {event.phase!r:.80}, but the workflow is in {run.phase!r:.80}"
    expected = run.executions.get(event.phase, 0) + 1
    if event.number != expected:
        yield f"is execution {event.number} of {event.phase!r:.80}, expected {expected}"


def ends(run: WorkflowRun, event: PhaseFinished | PhaseFailed) -> Iterator[str]:
    """The phase that was begun, or that could not be; a failure counts on."""
    if event.phase != run.phase:
        yield f"ends phase {event.phase!r:.80}, but the workflow is in {run.phase!r:.80}"
    if isinstance(event, PhaseFinished) and not run.is_in_flight:
        yield f"ends phase {event.phase!r:.80}, which was not begun"
    if isinstance(event, PhaseFailed) and event.retry_count != run.failures + 1:
        yield f"is failure {event.retry_count} in a row, expected {run.failures + 1}"


def merges(run: WorkflowRun, event: StateMerged) -> Iterator[str]:
    """The merged state is the one before with what the phase gave over it, and nothing else."""
    if run.outcome is None:
        yield "merges without an outcome of a phase"
        return
    before, after = run.current, json.loads(told(event.state))
    updates = updates_after(before, run.outcome, is_cascade=after.get("cascade_detected") is True)
    expected = merged(before, updates, 0).state
    if not same({**expected, STAMP: ""}, {**after, STAMP: ""}):
        wrong = sorted(key for key in {*expected, *after} - {STAMP} if not same(expected.get(key), after.get(key)))
        yield f"does not follow from the phase's updates: {', '.join(wrong)[:200]}"
    changed = {key for key in after if key not in before or not same(before[key], after[key])}
    if changed != set(event.fields_updated):
        yield f"says it updated {', '.join(event.fields_updated)[:200]}; it updated {', '.join(sorted(changed))[:200]}"
    if event.phase != after.get("phase"):
        yield f"says phase {event.phase!r:.80}, its state {after.get('phase')!r:.80}"


def summarises(run: WorkflowRun, event: SummaryReported) -> Iterator[str]:
    """The summary that the phase gave."""
    if run.outcome is not None and told(event.output) != summary_of(run.outcome):
        yield "tells another summary than the phase gave"


def cascades(run: WorkflowRun, event: CascadeDetected) -> Iterator[str]:
    """As many failures in the window as it says, and enough of them."""
    found = failures_in_window(run.outcomes, CascadeRule(event.threshold, event.window))
    if found != event.failures_in_window or found < event.threshold:
        yield f"counts {event.failures_in_window} failures in its window of {event.window}; there are {found}"


def decides(run: WorkflowRun, event: DecisionNeeded | DecisionTakenByUser) -> Iterator[str]:
    """One of the options; before a step was taken, nothing is asked but what was put off."""
    if isinstance(event, DecisionNeeded):
        if run.state == "reading" and event != run.postponed:
            yield f"asks about {event.about!r:.80} before a step was taken, which was not put off"
    elif run.decision is None or event.choice not in (*run.decision[2], "provide state"):
        yield f"chooses {event.choice!r:.80}, which was no option"


def accounts(run: WorkflowRun, event: SubagentSpawned | SubagentFinished) -> Iterator[str]:
    """What is bought inside a phase is held for before, and settled after."""
    if isinstance(event, SubagentFinished):
        yield from settles(run, event)
    elif event.reservation is not None:
        yield from reserves(run, event.reservation)


def reserves(run: WorkflowRun, held: Reservation) -> Iterator[str]:
    """What is held for a call, or for a run inside the phase, is within what the budget has left."""
    ledger = run.ledger
    if held.key in ledger.holds:
        yield f"holds for {held.key!r:.80}, which is in flight already"
        return
    wanted = {
        "tokens": held.input_tokens + (held.output_tokens or 0),
        "input_tokens": held.input_tokens,
        "output_tokens": held.output_tokens or 0,
        "money_micro": held.money_micro or 0,
    }
    for limit, spent, cap in ledger.sums():
        left = 0 if cap is None else cap - spent - ledger.held(limit)
        if cap is not None and wanted[limit] > left:
            yield f"holds {wanted[limit]} {limit.replace('_', ' ')}, {left} are left"


def settles(run: WorkflowRun, event: SubagentFinished) -> Iterator[str]:
    """What is charged settles what was held, once."""
    charge = event.charge
    if call_key(run.run_id, event.subagent_id) not in run.ledger.holds:
        yield f"charges {event.subagent_id!r:.80}, which is not in flight"
    if min(charge.input_tokens, charge.output_tokens, charge.money_micro) < 0:
        yield f"charges {charge}, less than nothing"


def told(text: Blob) -> str:
    """A text that a record names; EventError where it is not there."""
    return text.data.decode()

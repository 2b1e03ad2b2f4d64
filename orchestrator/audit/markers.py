"""Markers: every invocation is bracketed exactly once and in order, and a resumed one opens as it must."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.execution import Execution
from orchestrator.run import Run
from orchestrator_events.event import Event
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionEnd,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStart,
    OrchestratorComplete,
)
from orchestrator_events.record import Record
from orchestrator_events.run import GenerationAbandoned
from orchestrator_states.run import RunState

__all__ = ["Markers"]

OPENING = (ExecutionResumed, ExecutionInterrupted, BudgetRaised)
"""What only the opening of a resumed invocation holds."""


@attrs.define(eq=False)
class Markers:
    """Follows the brackets of the invocations."""

    invocation: int = 0
    is_begun: bool = False
    is_complete: bool = False
    left: str = ""
    """The open state that the run was left in when something ended it."""
    due: list[type[Event]] = attrs.Factory(list[type[Event]])
    """What the opening of this invocation has yet to hold, in order."""
    name: str = attrs.field(default="markers", init=False)

    def look(self, run: Execution, record: Record) -> Iterator[str]:
        """What is out of its place."""
        event, resting = record.event, run.machine.table.resting
        if isinstance(event, ExecutionStart):
            yield from self.started(run, event)
            return
        if record.lifecycle == run.lifecycle and record.target in resting and record.source not in resting:
            self.left = record.source
        yield from self.misplaced(event)
        match event:
            case OrchestratorComplete():
                self.is_complete = True
            case ExecutionEnd():
                if not self.is_complete:
                    yield "execution:end without orchestrator:complete directly before it"
                self.is_begun = self.is_complete = False
            case ExecutionResumed(into=into):
                if into != (expected := goes_on_in(run, self.left)):
                    yield f"goes on in {into!r:.80}, but the run was left in {expected!r:.80}"
                self.left = ""
                self.due += abandonment_of(run, into)
            case ExecutionInterrupted(invocation=number) if number != self.invocation - 1:
                yield f"closes invocation {number}, but {self.invocation - 1} was cut off"
            case _:
                pass

    def started(self, run: Execution, event: ExecutionStart) -> Iterator[str]:
        """The number of an invocation, and what has to open it."""
        if event.invocation != self.invocation + 1:
            yield f"is invocation {event.invocation}, expected {self.invocation + 1}"
        if self.is_complete:
            yield f"invocation {self.invocation} has orchestrator:complete but no execution:end"
        if self.due:
            yield f"invocation {self.invocation} lacks {self.due[0].name} at its opening"
        if self.is_begun and run.is_over:
            yield f"invocation {self.invocation} came to rest in {run.state} but has no execution:end"
        is_resumed, was_cut_off = self.invocation > 0, self.is_begun
        self.invocation += 1
        self.is_begun, self.is_complete, self.due = True, False, []
        if is_resumed:
            self.due = [ExecutionResumed]
            self.due += [ExecutionInterrupted] if was_cut_off else []
            self.due += [BudgetRaised] if event.budget != run.ledger.budget else []

    def misplaced(self, event: Event) -> Iterator[str]:
        """What may not stand here, whatever it says."""
        if self.invocation == 0:
            yield f"a run begins with {ExecutionStart.name}, not with {event.name}"
        elif not self.is_begun:
            yield f"{event.name} comes after the end of invocation {self.invocation}"
        elif self.is_complete and not isinstance(event, ExecutionEnd):
            yield f"{event.name} comes between orchestrator:complete and execution:end"
        if self.due and type(event) is self.due[0]:
            self.due.pop(0)
        elif self.due:
            yield f"{event.name} comes where invocation {self.invocation} has to open with {self.due[0].name}"
        elif isinstance(event, OPENING):
            yield f"{event.name} does not belong here"

    def end(self, run: Execution) -> Iterator[str]:
        """An invocation without its end."""
        if self.is_begun:
            yield (
                f"invocation {self.invocation} has no execution:end (state {run.state}): it runs, was cut off, "
                "or its end was removed"
            )


def goes_on_in(run: Execution, left: str) -> str:
    """The open state that a resumed run goes on in: the one that was left, or the one that its table names."""
    table = run.machine.table
    is_noted = any(each.event == ExecutionResumed.name and run.state in each.states for each in table.notes)
    if run.state not in table.resting or is_noted:
        return run.state  # a run that waits where it rests, a paused workflow, goes on waiting there
    named = [row for row in table.rows if row.event == ExecutionResumed.name and run.state in row.sources]
    return str(named[0].target) if len(named) == 1 and not named[0].where else left or run.state


def abandonment_of(run: Execution, into: str) -> list[type[Event]]:
    """What a call that was in flight needs at the opening of the next invocation."""
    if isinstance(run, Run):
        return [GenerationAbandoned] if into == RunState.GENERATING and run.started is not None else []
    if run.lifecycle == "workflow":
        from orchestrator_events.workflow import PhaseAbandoned

        return [PhaseAbandoned] if getattr(run, "is_in_flight", False) else []
    from orchestrator.agent.run import AgentRun
    from orchestrator_events.agent import TurnAbandoned

    return [TurnAbandoned] if isinstance(run, AgentRun) and run.is_in_flight else []

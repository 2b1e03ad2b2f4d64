"""A workflow in memory: the fold of its records, over two machines in one stream.

The loop's own machine is that of every workflow; the second one has the domain's phases as states. A record's
lifecycle says which of them it moved, and each is followed apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import attrs

from orchestrator.execution import Execution, changes_of, new_record
from orchestrator.jsondata import JSON
from orchestrator.workflow.components.port import call_key
from orchestrator.workflow.decisions import GO_ON, OPTIONS, SOURCES, About
from orchestrator.workflow.statefile import StateFile
from orchestrator.workflow.statetext import NEW
from orchestrator_events.budget import Charge
from orchestrator_events.execution import BudgetRaised, ExecutionCancelled, ExecutionFailed, ExecutionResumed
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted, BudgetOverrun
from orchestrator_events.workflow import (
    DecisionNeeded,
    DecisionTakenByUser,
    PhaseAbandoned,
    PhaseAnswered,
    PhaseAsked,
    PhaseEntered,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    StateMerged,
    StateRead,
    StateUnreadable,
    StateUnwritable,
    StateWritten,
    SubagentFinished,
    SubagentSpawned,
    SummaryReported,
)
from orchestrator_states.machine import TableMachine
from orchestrator_states.workflow import WorkflowState

if TYPE_CHECKING:
    from orchestrator.workflow.statetext import State

__all__ = ["Call", "WorkflowRun"]

PAUSED = WorkflowState.PAUSED.value


@attrs.define
class Call:
    """One call of the generator that executes a phase file."""

    number: int
    key: str
    prompt: str
    answer: str | None = None
    """None while it is out, and when it never came."""


@attrs.define(eq=False, kw_only=True)
class WorkflowRun(Execution):
    """A workflow: its state, the phase it is in, and what came of the phases so far."""

    phases: TableMachine
    """The machine of the domain's phases."""
    parameters: dict[str, JSON] = attrs.Factory(dict)
    """What it was started with."""
    phase: str = "begun"
    """State of the second machine: the phase that it is in."""
    state_text: str = ""
    """The state as the journal has it; empty before the first one."""
    file_text: str = ""
    """The state as the file was last seen or written; empty before, and once the file was released."""
    file_path: str = ""
    """Where that was."""
    released_path: str = ""
    """Where it was until the workflow was aborted, which gives its name free; empty otherwise."""
    overwrites: str = ""
    """Where the state comes from that may replace whatever the file holds; empty: none may."""
    executions: dict[str, int] = attrs.Factory(dict[str, int])
    """How often each phase was executed."""
    started: PhaseStarted | None = None
    is_in_flight: bool = False
    """Whether a phase was started whose outcome is not recorded."""
    calls: list[Call] = attrs.Factory(list[Call])
    """Calls of the generator in this execution of the phase."""
    open_call: Call | None = None
    """The one that is out."""
    outcome: PhaseFinished | PhaseFailed | None = None
    """Of the last phase that was executed."""
    is_unreported: bool = False
    """Whether its summary was not shown yet."""
    outcomes: list[bool] = attrs.Factory(list[bool])
    """Successes and failures since the last cascade was decided on, oldest first."""
    errors: list[PhaseFailed] = attrs.Factory(list[PhaseFailed])
    """The failures among them."""
    failures: int = 0
    """How many times in a row the phase has failed."""
    trouble: StateUnreadable | StateUnwritable | None = None
    """Why the state file could not be used."""
    needed: DecisionNeeded | None = None
    postponed: DecisionNeeded | None = None
    """What has to be decided once it is known which state holds."""
    exhausted: BudgetExhausted | None = None
    given_up: str = ""
    """Why it was aborted, or failed."""
    is_denied: bool = False
    spent_before: Charge = attrs.Factory(Charge)
    """What was charged when the phase's execution began."""

    @property
    def current(self) -> dict[str, JSON]:
        """The state, a copy; empty before the first one."""
        found: dict[str, JSON] = json.loads(self.state_text or "{}")
        return found

    @property
    def workflow_id(self) -> str | None:
        """The id in its state; None as long as there is none."""
        return id_in(self.current)

    @property
    def taken_id(self) -> str | None:
        """The id that its file has; one that another workflow's file has already is not its own."""
        path = self.file_path or self.released_path
        return StateFile.at(path).workflow_id if path else None

    @property
    def name(self) -> str:
        """What it is called: its id as soon as its file has it, `workflow-new` before."""
        return self.taken_id or NEW

    @property
    def decision(self) -> tuple[str, str, tuple[str, ...]] | None:
        """What has to be decided: about what, what happened, the options; None when nothing has to be."""
        if self.state != PAUSED:
            return None
        if self.exhausted is not None:
            message = f"The budget's limit {self.exhausted.limit!r} is reached: {self.exhausted.detail}"
            return About.BUDGET.value, message, OPTIONS[About.BUDGET]
        return (self.needed.about, self.needed.message, self.needed.options) if self.needed else None

    @property
    def is_alerted(self) -> bool:
        """Whether what has to be decided is about a cascade, or about a phase that goes round in circles."""
        return self.needed is not None and self.needed.about in (About.CASCADE, About.HALTED)

    def enter(self, phase: str) -> None:
        """Enter a phase: a move of the domain's own machine; IllegalTransitionError where it does not allow it."""
        event = PhaseEntered(phase=phase)
        target = self.phases.target(self.phase, event)
        name = self.phases.table.name
        record = new_record(Record, (self.run_id, self.sequence + 1, self.clock.now(), name, self.phase, target, event))
        self.outbox.append(record)
        self.apply(record)

    def apply(self, record: Record) -> None:
        """Fold one record into the run, each lifecycle's into its own machine."""
        if record.lifecycle == self.lifecycle:
            super().apply(record)
        else:
            self.sequence, self.phase = record.sequence, record.target

    def spent(self) -> Charge:
        """What the execution of the phase was charged so far."""
        ledger, before = self.ledger, self.spent_before
        return Charge(
            input_tokens=ledger.input_tokens - before.input_tokens,
            output_tokens=ledger.output_tokens - before.output_tokens,
            money_micro=ledger.money_micro - before.money_micro,
            estimated=ledger.has_estimates,
        )


def id_in(state: State) -> str | None:
    """The workflow's id in a state."""
    found = state.get("workflow_id")
    return found if isinstance(found, str) else None


def resumed(run: WorkflowRun, _: ExecutionResumed) -> None:
    """Whatever had ended it no longer does."""
    run.given_up, run.is_denied = "", False
    if run.state != PAUSED:
        run.exhausted = None


def read(run: WorkflowRun, event: StateRead) -> None:
    """The file and the journal say the same."""
    run.state_text = run.file_text = event.state.text or ""
    run.trouble, run.overwrites, run.postponed = None, "", None


def written(run: WorkflowRun, event: StateWritten) -> None:
    """The file is what the journal says."""
    run.file_text, run.file_path, run.released_path = event.state.text or "", event.path, ""
    run.overwrites = ""


def in_trouble(run: WorkflowRun, event: StateUnreadable | StateUnwritable) -> None:
    """The file cannot be used; what had to be decided already comes after that."""
    run.postponed = run.needed if run.trouble is None else run.postponed
    run.trouble = event


def started(run: WorkflowRun, event: PhaseStarted) -> None:
    """A phase is being executed; one whose outcome is unknown goes on with the calls it had made."""
    before = run.started
    is_again = before is not None and before.phase == event.phase and run.outcome is None
    run.started, run.is_in_flight, run.outcome = event, True, None
    run.executions[event.phase] = event.number
    run.ledger.attempts += 1
    if not is_again:
        ledger = run.ledger
        run.calls.clear()
        run.spent_before = Charge(
            input_tokens=ledger.input_tokens, output_tokens=ledger.output_tokens, money_micro=ledger.money_micro
        )


def asked(run: WorkflowRun, event: PhaseAsked) -> None:
    """A call is out; what the guard reserved is held (again, when folding a journal)."""
    key = event.reservation.key
    run.ledger.holds.setdefault(key, event.reservation)
    run.ledger.calls += 1
    if run.calls and run.calls[-1].number == event.call:
        run.calls.pop()
    run.open_call = Call(event.call, key, event.prompt.text or "")
    run.calls.append(run.open_call)


def answered(run: WorkflowRun, event: PhaseAnswered) -> None:
    """It came back, with an answer or without."""
    run.ledger.settle(event.key, event.charge)
    run.open_call = None
    if not event.error and run.calls:
        run.calls[-1].answer = event.answer.text or ""


def abandoned(run: WorkflowRun, event: PhaseAbandoned) -> None:
    """The outcome is unknown: the call that was out is charged; subagents' calls are, once it is executed again."""
    run.is_in_flight = False
    if run.open_call is not None:
        run.ledger.settle(run.open_call.key, event.charge)
        run.open_call = None


def spawned(run: WorkflowRun, event: SubagentSpawned) -> None:
    """A subagent's call is out."""
    if event.reservation is not None:
        run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1


def subagent_finished(run: WorkflowRun, event: SubagentFinished) -> None:
    """It came back."""
    run.ledger.settle(call_key(run.run_id, event.subagent_id), event.charge)


def finished(run: WorkflowRun, event: PhaseFinished) -> None:
    """The phase succeeded."""
    run.outcome, run.is_in_flight, run.is_unreported = event, False, True
    run.failures = 0
    run.outcomes.append(True)


def failed(run: WorkflowRun, event: PhaseFailed) -> None:
    """The phase failed."""
    run.outcome, run.is_in_flight, run.is_unreported = event, False, True
    run.failures = event.retry_count
    run.outcomes.append(False)
    run.errors.append(event)


def merged(run: WorkflowRun, event: StateMerged) -> None:
    """The state is another."""
    run.state_text = event.state.text or ""


def reported(run: WorkflowRun, _: SummaryReported) -> None:
    """The summary was shown."""
    run.is_unreported = False


def needed(run: WorkflowRun, event: DecisionNeeded) -> None:
    """Somebody has to decide."""
    run.needed = event
    if run.trouble is None:
        run.postponed = None


def taken(run: WorkflowRun, event: DecisionTakenByUser) -> None:
    """Somebody has decided."""
    if run.is_alerted and event.choice != GO_ON and run.current.get("cascade_detected"):
        run.outcomes.clear()
        run.errors.clear()
    if event.phase != run.phase:
        run.failures, run.postponed = 0, None
    run.needed, run.exhausted, run.trouble = None, None, None
    if not event.goes_on:
        run.given_up = f"{event.by} chose to {event.choice}"
        release(run)
    elif event.state is not None:
        run.state_text = event.state.text or ""
        run.overwrites = SOURCES.get(event.choice, "")


def release(run: WorkflowRun) -> None:
    """The file's name is free for another workflow; what is resumed all the same has to take it anew."""
    run.released_path, run.file_path, run.file_text = run.file_path, "", ""


def exhausted(run: WorkflowRun, event: BudgetExhausted) -> None:
    """A limit is reached."""
    run.exhausted = event


def overran(run: WorkflowRun, event: BudgetOverrun) -> None:
    """Nothing more is bought."""
    run.ledger.overruns += event.limits


def cancelled(run: WorkflowRun, event: ExecutionCancelled) -> None:
    """It is given up, or was denied."""
    run.given_up, run.is_denied = event.reason, event.is_denial
    release(run)


def broken(run: WorkflowRun, event: ExecutionFailed) -> None:
    """The engine failed."""
    run.given_up = event.reason


def raised(run: WorkflowRun, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()


WorkflowRun.changes = changes_of(
    {
        BudgetExhausted: exhausted,
        BudgetOverrun: overran,
        BudgetRaised: raised,
        DecisionNeeded: needed,
        DecisionTakenByUser: taken,
        ExecutionCancelled: cancelled,
        ExecutionFailed: broken,
        ExecutionResumed: resumed,
        PhaseAbandoned: abandoned,
        PhaseAnswered: answered,
        PhaseAsked: asked,
        PhaseFailed: failed,
        PhaseFinished: finished,
        PhaseStarted: started,
        StateMerged: merged,
        StateRead: read,
        StateUnreadable: in_trouble,
        StateUnwritable: in_trouble,
        StateWritten: written,
        SubagentFinished: subagent_finished,
        SubagentSpawned: spawned,
        SummaryReported: reported,
    }
)

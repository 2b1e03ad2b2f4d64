"""Going on with a run where it was left: fold its journal, refuse what differs, record what changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.generating import in_flight
from orchestrator.history import load_run
from orchestrator.nesting import lost_charge
from orchestrator_events.blob import Blob
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionCancelled,
    ExecutionEnd,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStart,
)
from orchestrator_events.run import (
    BudgetExhausted,
    GenerationAbandoned,
)
from orchestrator_states.run import RunState

if TYPE_CHECKING:
    from orchestrator.engine import Orchestrator
    from orchestrator.run import Run

__all__ = ["ResumeRefusedError", "reopen"]

Difference = tuple[str, str, str]
"""A field of the identity, its recorded value and the one configured now."""


class ResumeRefusedError(OrchestratorError):
    """A run cannot go on as asked; nothing was written. `differences` lists identity fields that differ."""

    def __init__(self, run_id: str, reason: str, differences: tuple[Difference, ...] = ()) -> None:
        self.run_id = run_id
        self.reason = reason
        self.differences = differences
        lines = [f"  {field}: recorded {was}, now {now}" for field, was, now in differences]
        super().__init__("\n".join([f"run {run_id} cannot be resumed: {reason}", *lines]))


async def reopen(orchestrator: Orchestrator, run_id: str) -> Run:
    """The run as its journal tells it, with the records that open a new invocation in its outbox.

    Raises ResumeRefusedError, UnknownRunError and JournalError (a damaged journal is never started afresh).
    """
    journal = orchestrator.journal
    if journal is None:
        raise ResumeRefusedError(run_id, "this orchestrator has no journal: give it the one that recorded the run")
    run = await load_run(journal, run_id)
    first = refuse_other_identity(run, orchestrator)
    into, was_exhausted = state_to_go_on_in(run), run.exhausted is not None
    ends = [record for record in run.records if isinstance(record.event, ExecutionStart | ExecutionEnd)]
    was_cut_off = isinstance(ends[-1].event, ExecutionStart)
    cut_off_at, measured_us = run.invocation, run.ledger.carried_us
    run.clock = run.ledger.clock = orchestrator.clock
    run.opening = orchestrator.driver.prompter.opening(run.spec)
    run.fire(
        ExecutionStart(
            invocation=run.invocation + 1,
            table_digest=run.machine.table.digest,
            prompt=Blob(run.spec.canonical),
            identity=orchestrator.identity(),
            budget=orchestrator.budget,
            root_id=first.root_id,
            parent_id=first.parent_id,
            parent_sequence=first.parent_sequence,
        )
    )
    run.fire(ExecutionResumed(into=into, reason="cut off" if was_cut_off else "resumed"))
    if was_cut_off:
        run.fire(ExecutionInterrupted(invocation=cut_off_at, active_us=measured_us))
    change_limits(run, orchestrator, was_exhausted=was_exhausted)
    await abandon_lost_call(run, orchestrator)
    return run


def refuse_other_identity(run: Run, orchestrator: Orchestrator) -> ExecutionStart:
    """How the run began; refused when what made it is not what would go on with it, field by field."""
    start = run.records[0].event
    assert isinstance(start, ExecutionStart)
    if start.table_digest != run.machine.table.digest:
        raise ResumeRefusedError(run.run_id, "its lifecycle table is not the one of this release: start a new run")
    was, now = json.loads(start.identity), json.loads(orchestrator.identity())
    differences = tuple(
        (field, json.dumps(was.get(field)), json.dumps(now.get(field)))
        for field in sorted({*was, *now})
        if was.get(field) != now.get(field)
    )
    if differences:
        reason = "it was made with another configuration: go on under that one, or start a new run"
        raise ResumeRefusedError(run.run_id, reason, differences)
    return start


def state_to_go_on_in(run: Run) -> str:
    """The open state that the run was left in."""
    if run.state == RunState.PASSED:
        raise ResumeRefusedError(run.run_id, "it passed: there is nothing left to do")
    if not run.is_over:
        return run.state
    ending = (BudgetExhausted, ExecutionCancelled, ExecutionFailed)
    return next(record.source for record in reversed(run.records) if isinstance(record.event, ending))


def change_limits(run: Run, orchestrator: Orchestrator, *, was_exhausted: bool) -> None:
    """Record other limits; a run that a limit had ended must be able to go on with them."""
    if orchestrator.budget != run.ledger.budget:
        run.fire(BudgetRaised(budget=orchestrator.budget))
    ledger = run.ledger
    next_attempt = ledger.attempts + (run.state in {RunState.REFINING, RunState.PROMPTING})
    refusal = ledger.refusal(next_attempt, ledger.elapsed_us()) if was_exhausted else None
    if refusal is not None:
        reason = f"the limit {refusal.limit!r} is still reached ({refusal.detail}): raise it"
        raise ResumeRefusedError(run.run_id, reason)


async def abandon_lost_call(run: Run, orchestrator: Orchestrator) -> None:
    """A call in flight at a crash: its outcome is unknown, it is charged whole and made again under the same key.

    One that started a child is charged what the child's journal says, and goes on with that child.
    """
    if in_flight(run) and run.started is not None:
        key = run.started.reservation.key
        run.fire(
            GenerationAbandoned(
                attempt=run.started.attempt,
                key=key,
                charge=await lost_charge(run, orchestrator.driver.generator),
                reason="outcome unknown: the call was in flight when the run was cut off",
            )
        )

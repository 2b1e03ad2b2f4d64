"""Going on with a run where it was left: fold its journal, refuse what differs, record what changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.generating import in_flight
from orchestrator.history import load_run
from orchestrator.nesting import lost_charge
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_identity
from orchestrator_events.execution import ExecutionCancelled, ExecutionFailed
from orchestrator_events.run import (
    BudgetExhausted,
    GenerationAbandoned,
)
from orchestrator_states.run import RunState

if TYPE_CHECKING:
    from orchestrator.engine import Orchestrator
    from orchestrator.run import Run

__all__ = ["ResumeRefusedError", "reopen"]


async def reopen(orchestrator: Orchestrator, run_id: str) -> Run:
    """The run as its journal tells it, with the records that open a new invocation in its outbox.

    Raises ResumeRefusedError, UnknownRunError and JournalError (a damaged journal is never started afresh).
    """
    journal = orchestrator.journal
    if journal is None:
        raise ResumeRefusedError(run_id, "this orchestrator has no journal: give it the one that recorded the run")
    run = await load_run(journal, run_id)
    refuse_other_identity(run, json.loads(orchestrator.identity()))
    into, was_exhausted = state_to_go_on_in(run), run.exhausted is not None
    run.opening = orchestrator.driver.prompter.opening(run.spec)
    begin_again(run, orchestrator.clock, orchestrator.budget, into)
    if was_exhausted:
        refuse_reached_limit(run)
    await abandon_lost_call(run, orchestrator)
    return run


def state_to_go_on_in(run: Run) -> str:
    """The open state that the run was left in."""
    if run.state == RunState.PASSED:
        raise ResumeRefusedError(run.run_id, "it passed: there is nothing left to do")
    if not run.is_over:
        return run.state
    ending = (BudgetExhausted, ExecutionCancelled, ExecutionFailed)
    return next(record.source for record in reversed(run.records) if isinstance(record.event, ending))


def refuse_reached_limit(run: Run) -> None:
    """A run that a limit had ended must be able to go on with the limits of now."""
    ledger = run.ledger
    next_attempt = ledger.attempts + (run.state in {RunState.REFINING, RunState.PROMPTING})
    refusal = ledger.refusal(next_attempt, ledger.elapsed_us())
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

"""Committing what happened, and closing an invocation, on every way out exactly once."""

from __future__ import annotations

import asyncio

from orchestrator.execution import Execution
from orchestrator.run import Run
from orchestrator.wording import describe
from orchestrator_events.bus import Bus
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionEnd, OrchestratorComplete
from orchestrator_events.journal import Batch
from orchestrator_states.run import RunState

__all__ = ["close", "commit", "conclude"]

NAME = "conformance"
ENDINGS = {
    RunState.PASSED.value: ("success", "completed"),
    RunState.EXHAUSTED.value: ("incomplete", "completed"),
}
"""Status of `orchestrator:complete` and of `execution:end`, by the state the run rests in."""


async def commit(bus: Bus, run: Execution) -> None:
    """Record everything since the last effect in one transaction, then publish it.

    Raises JournalError, whatever it is that the journal raised.
    """
    if not run.outbox:
        return
    batch = Batch(run.run_id, tuple(run.outbox), epoch=run.invocation)  # a resume fences whoever wrote before it
    run.outbox.clear()
    try:
        failures = await bus.publish(batch, run.journal)
    except asyncio.CancelledError:
        run.records += batch.records  # the journal took the batch before it could be waited for
        raise
    except JournalError:
        raise
    except Exception as error:
        raise JournalError(f"the history could not be recorded: {describe(error)}", run_id=run.run_id) from error
    run.records += batch.records
    for failure in failures:
        if failure.subscriber not in run.failed_subscribers and not run.is_over:
            run.fire(failure)


async def close(bus: Bus, run: Run, status: str = "", reason: str = "") -> None:
    """Fire and commit the end markers of a conformance run's invocation."""
    completion, ending = ENDINGS.get(run.state, ("incomplete", "error"))
    if status == "cancelled":
        completion, ending = "cancelled", "cancelled"
    is_passed = run.state == RunState.PASSED and run.generated is not None
    response = run.generated.candidate.digest if is_passed and run.generated else ""
    complete = OrchestratorComplete(orchestrator=NAME, turn_count=run.answered, status=completion)
    await conclude(bus, run, complete, response, ending, reason, is_broken=status == "error")


async def conclude(
    bus: Bus,
    run: Execution,
    complete: OrchestratorComplete,
    response: str,
    status: str,
    reason: str,
    *,
    is_broken: bool = False,
) -> None:
    """Fire and commit the invocation's end markers, whichever lifecycle it has.

    Raises JournalError, but not where the run broke already: the journal then failed before.
    """
    run.fire(complete)
    run.fire(ExecutionEnd(response=response, status=status, reason=reason, active_us=run.ledger.elapsed_us()))
    try:
        await commit(bus, run)
    except JournalError:
        if not is_broken:
            raise

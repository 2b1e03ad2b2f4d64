"""What opens another invocation of a run, whichever lifecycle it has: what may not differ, and what is fired."""

from __future__ import annotations

import json
from collections.abc import Mapping

from orchestrator.execution import Execution
from orchestrator.folding import start_of
from orchestrator.jsondata import JSON
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionEnd,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStart,
)

__all__ = ["Difference", "ResumeRefusedError", "begin_again", "refuse_other_identity", "refuse_other_table"]

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


def refuse_other_table(run: Execution) -> None:
    """Refuse a run whose moves another table decided."""
    if start_of(run.records[0]).table_digest != run.machine.table.digest:
        raise ResumeRefusedError(run.run_id, "its lifecycle table is not the one of this release: start a new run")


def refuse_other_identity(
    run: Execution,
    now: Mapping[str, JSON],
    *,
    besides: frozenset[str] = frozenset(),
    more: tuple[Difference, ...] = (),
) -> None:
    """Refuse when what made the run is not what would go on with it: field by field, those in `besides` left out.

    `more` are differences that the caller found in those.
    """
    refuse_other_table(run)
    was = json.loads(start_of(run.records[0]).identity)
    differences = tuple(
        (field, json.dumps(was.get(field)), json.dumps(now.get(field)))
        for field in sorted({*was, *now} - besides)
        if was.get(field) != now.get(field)
    )
    differences += more
    if differences:
        reason = "it was made with another configuration: go on under that one, or start a new run"
        raise ResumeRefusedError(run.run_id, reason, differences)


def begin_again(
    run: Execution, clock: Clock, budget: Budget, into: str, *, reason: str = "", prompt: Blob | None = None
) -> None:
    """Fire what opens another invocation: its marker, where it goes on, what was cut off, other limits.

    The marker names the same prompt (unless there is another now), identity and parent as the first one.
    """
    start = start_of(run.records[0])
    ends = [record.event for record in run.records if isinstance(record.event, ExecutionStart | ExecutionEnd)]
    was_cut_off, cut_off_at = isinstance(ends[-1], ExecutionStart), run.invocation
    measured_us = run.ledger.carried_us
    run.clock = run.ledger.clock = clock
    run.fire(
        ExecutionStart(
            invocation=run.invocation + 1,
            table_digest=run.machine.table.digest,
            prompt=prompt or start.prompt,
            identity=start.identity,
            budget=budget,
            root_id=start.root_id,
            parent_id=start.parent_id,
            parent_sequence=start.parent_sequence,
        )
    )
    run.fire(ExecutionResumed(into=into, reason=reason or ("cut off" if was_cut_off else "resumed")))
    if was_cut_off:
        run.fire(ExecutionInterrupted(invocation=cut_off_at, active_us=measured_us))
    if budget != run.ledger.budget:
        run.fire(BudgetRaised(budget=budget))

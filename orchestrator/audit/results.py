"""Results: what each invocation says at its end is what its records come to."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.run import Run
from orchestrator_events.execution import ExecutionEnd, OrchestratorComplete
from orchestrator_events.record import Record
from orchestrator_states.run import RunState

__all__ = ["Results"]

ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    RunState.PASSED: (("success", "completed"),),
    RunState.EXHAUSTED: (("incomplete", "completed"),),
}
OTHERWISE = (("incomplete", "error"), ("cancelled", "cancelled"))
"""Status of `orchestrator:complete` and of `execution:end` by the state that the run is in (contract 2)."""


@attrs.define(eq=False)
class Results:
    """Holds the end markers against the fold."""

    completion: str = ""
    name: str = attrs.field(default="results", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """Statements that do not follow."""
        event = record.event
        allowed = ENDINGS.get(run.state, OTHERWISE)
        if isinstance(event, OrchestratorComplete):
            self.completion = event.status
            if event.status not in [completion for completion, _ in allowed]:
                yield f"says {event.status!r:.80} of a run in state {run.state}"
            if event.turn_count != run.answered:
                yield f"counts {event.turn_count} answers of the generator, there are {run.answered}"
        elif isinstance(event, ExecutionEnd):
            if (self.completion, event.status) not in allowed:
                yield f"says {event.status!r:.80} of a run in state {run.state}"
            is_passed = run.state == RunState.PASSED and run.generated is not None
            expected = run.generated.candidate.digest if is_passed and run.generated is not None else ""
            if event.response != expected:
                yield f"names the response {event.response or 'none':.80}, the records give {expected or 'none'}"

    def end(self, run: Run) -> Iterator[str]:
        """A run that passed without an attempt that did."""
        if run.state == RunState.PASSED and (run.last is None or not run.last.is_conforming):
            yield "the run passed, but its last attempt did not"

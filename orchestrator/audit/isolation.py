"""Isolation: what holds generator and evaluation is stated before the first attempt, and each attempt agrees."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.execution import Execution
from orchestrator.run import Run
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import LEVELS
from orchestrator_events.record import Record
from orchestrator_events.run import CandidateGenerated, PromptReady

__all__ = ["IsolationInForce"]

PLACE = 2
"""Sequence of the record that says what holds a run in; `execution:start` is before it."""

AGENT_ACTS = frozenset({"turn:started", "action:started"})
"""What an agent does; where it is refused at once, nothing says what would have held it."""


@attrs.define(eq=False)
class IsolationInForce:
    """Follows what holds generator and evaluation in."""

    name: str = attrs.field(default="isolation", init=False)

    def look(self, run: Execution, record: Record) -> Iterator[str]:
        """A missing statement, one of less than was required, an attempt that says otherwise."""
        event = record.event
        if isinstance(run, Run) and record.sequence == PLACE and not isinstance(event, IsolationEstablished):
            yield f"is {event.name}, where isolation:established has to stand"
        if isinstance(event, IsolationEstablished):
            for role, found in (("generator", event.generator), ("evaluator", event.evaluator)):
                if event.required not in LEVELS or found.level not in LEVELS or not found.satisfies(event.required):
                    yield f"requires {event.required!r:.40}, but the {role} has {found.label:.80}"
        elif isinstance(event, PromptReady) and run.isolation is None:
            yield "begins an attempt before isolation:established"
        elif event.name in AGENT_ACTS and run.isolation is None:
            yield f"{event.name} before isolation:established"
        elif (
            isinstance(event, CandidateGenerated)
            and isinstance(run, Run)
            and event.isolation != run.generator_isolation
        ):
            yield f"was generated under {event.isolation!r:.80}, established was {run.generator_isolation!r:.80}"

    def end(self, run: Execution) -> Iterator[str]:  # noqa: ARG002 -- every record has been read
        """Nothing."""
        yield from ()

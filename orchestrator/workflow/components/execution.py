"""What the events of a run say of the current execution of a phase."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator_events.event import Event
from orchestrator_events.workflow import PhaseFailed, PhaseFinished, PhaseStarted

__all__ = ["current_execution"]


def current_execution(history: Sequence[Event], phase: str) -> Sequence[Event]:
    """The events since the last outcome of a phase: an execution that was cut off and begun again is still the same.

    One that was cut off and left for another phase is over.
    """
    begun = len(history)
    for index in range(len(history) - 1, -1, -1):
        event = history[index]
        if isinstance(event, PhaseFinished | PhaseFailed):
            return history[index + 1 :]
        if isinstance(event, PhaseStarted):
            if event.phase != phase:
                return history[begun:]
            begun = index
    return history

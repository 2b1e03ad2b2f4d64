"""Lifecycles as literal tables, the machine that runs them, and their exports."""

from __future__ import annotations

from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle, Note, Row, StateName, note, on
from orchestrator_states.machine import IllegalTransitionError, Model, machine_of
from orchestrator_states.run import RUN, RunState

__all__ = [
    "RUN",
    "IllegalTransitionError",
    "Lifecycle",
    "LifecycleError",
    "Model",
    "Note",
    "Row",
    "RunState",
    "StateName",
    "machine_of",
    "note",
    "on",
]

"""The lifecycles that come with the engine, by name, each loaded at first use."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType

from orchestrator_events.errors import StateError
from orchestrator_states.lifecycle import Lifecycle

__all__ = ["LIFECYCLES", "UnknownLifecycleError", "lifecycle"]

LIFECYCLES: Mapping[str, str] = MappingProxyType(
    {
        "agent": "orchestrator_states.agent:AGENT",
        "plan": "orchestrator_states.plan:PLAN",
        "run": "orchestrator_states.run:RUN",
        "step": "orchestrator_states.plan:STEP",
        "workflow": "orchestrator_states.workflow:WORKFLOW",
    }
)


class UnknownLifecycleError(StateError):
    """No lifecycle of this name comes with the engine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.known = tuple(LIFECYCLES)
        close = get_close_matches(name, LIFECYCLES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(LIFECYCLES)}"
        super().__init__(f"no lifecycle is called {name!r}; {hint}")


def lifecycle(name: str) -> Lifecycle:
    """The built-in lifecycle of this name; raises UnknownLifecycleError, which names a close one."""
    place = LIFECYCLES.get(name)
    if place is None:
        raise UnknownLifecycleError(name)
    module, _, attribute = place.partition(":")
    found: Lifecycle = getattr(import_module(module), attribute)
    return found

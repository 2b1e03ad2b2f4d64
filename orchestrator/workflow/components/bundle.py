"""The components as a phase gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import attrs

from orchestrator.ports import Generator
from orchestrator.workflow.components.children import Children
from orchestrator.workflow.components.learnings import Learnings
from orchestrator.workflow.components.metrics import MetricsCollector
from orchestrator.workflow.components.port import ComponentHost
from orchestrator.workflow.components.retry import Operation, RetryHandler
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator.workflow.components.subagents import Subagents

__all__ = ["Components", "WouldBlockError", "components_for"]

Result = TypeVar("Result")


class WouldBlockError(RuntimeError):
    """A phase waited for a component in the event loop's own thread, which would never end."""

    def __init__(self) -> None:
        super().__init__(
            "an async phase awaits its components itself: write `await ...` instead of components.wait(...)"
        )


@attrs.frozen(eq=False)
class Components:
    """What a phase callable gets beside the state: `(state, components) -> PhaseOutcome`."""

    retry: RetryHandler
    metrics: MetricsCollector
    learnings: Learnings
    subagents: Subagents
    children: Children
    """Runs inside the phase, under the workflow's budget and in its journal."""
    generators: Mapping[str, Generator]
    """The workflow's generators by name."""
    loop: asyncio.AbstractEventLoop | None = None
    """The loop that the run is driven in."""

    def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a component's coroutine, for a sync phase: `components.wait(components.metrics.count("x"))`.

        Raises what it raises, and WouldBlockError in an async phase.
        """
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not None or self.loop is None:
            work.close()
            raise WouldBlockError
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


def components_for(
    settings: ComponentSettings, host: ComponentHost, operations: dict[str, Operation] | None = None
) -> Components:
    """The components of one execution of a phase; called in the loop that drives the run.

    `operations` are the host's own, by name, for phases that ask for them as a tool.
    """
    learnings = Learnings(settings.learning_recorder, host)
    return Components(
        retry=RetryHandler(settings.retry_handler, host, learnings, operations or {}),
        metrics=MetricsCollector(settings.metrics_collector, host),
        learnings=learnings,
        subagents=Subagents(settings.subagent_spawner, host),
        children=Children(host),
        generators=host.generators,
        loop=asyncio.get_running_loop(),
    )

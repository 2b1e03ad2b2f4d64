"""Mounting the orchestrator into a session of Amplifier (contract 2)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from orchestrator.amplifier.loop import ConformanceLoop
from orchestrator.amplifier.names import MODULE_ID, custom_events
from orchestrator_events.errors import OrchestratorError

__all__ = ["mount"]

OBSERVABILITY = "observability.events"
"""Contribution channel for the names of a module's own events."""
WORKING_DIRECTORY = "session.working_dir"
"""Capability under which applications state the directory that a session works in."""

logger = logging.getLogger("orchestrator.amplifier")


async def mount(coordinator: Any, config: dict[str, Any] | None = None) -> Callable[[], Awaitable[None]] | None:
    """Mount the agent loop as the session's orchestrator; returns its cleanup.

    A configuration with faults mounts nothing, returns None and logs every fault with its path; so does a journal
    that cannot be opened. Source: contract 2, "Entry Point Pattern".
    """
    try:
        loop = ConformanceLoop(config, directory=directory_of(coordinator))
    except (OrchestratorError, ValueError) as error:
        logger.error("%s is not mounted: %s", MODULE_ID, error)  # noqa: TRY400 -- the message is the whole story
        return None
    await coordinator.mount("orchestrator", loop)
    coordinator.register_contributor(OBSERVABILITY, MODULE_ID, custom_events)
    return loop.close


def directory_of(coordinator: Any) -> str:
    """The session's working directory, where the application states one as it does for tools; else empty."""
    capability = getattr(coordinator, "get_capability", None)
    stated = capability(WORKING_DIRECTORY) if callable(capability) else None
    return stated if isinstance(stated, str) else ""

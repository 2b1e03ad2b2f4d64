"""Which attempt of a run its exports speak of, and the words they share."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.attempt import Attempt
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionStart

__all__ = ["decisive", "identity_of", "stamp", "start_of"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decisive(run: Run) -> Attempt | None:
    """The attempt that a run's outcome stands on: the conforming one, else the closest; None without a verdict."""
    if run.last is not None and run.last.is_conforming:
        return run.last
    return run.closest


def start_of(run: Run) -> ExecutionStart:
    """The event of a loaded run's first record."""
    event = run.records[0].event
    assert isinstance(event, ExecutionStart)
    return event


def identity_of(run: Run) -> dict[str, Any]:
    """What was configured: generator, evaluator, strategy, language, parameters."""
    found: dict[str, Any] = json.loads(start_of(run).identity)
    return found


def stamp(at: int) -> str:
    """Microseconds since the Unix epoch as an RFC 3339 text in UTC."""
    return (EPOCH + timedelta(microseconds=at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""What plans and steps have in common: runs inside them, which their records announce and end."""

from __future__ import annotations

from typing import Final

import attrs

from orchestrator.execution import Changes, Execution
from orchestrator_events.execution import ChildEnded, ChildStarted

__all__ = ["CHILDREN", "ParentRun"]


@attrs.define(eq=False, kw_only=True)
class ParentRun(Execution):
    """A run with runs inside it."""

    children: dict[str, int] = attrs.Factory(dict[str, int])
    """Runs inside it, with the number of the record that announced each."""
    ended: set[str] = attrs.Factory(set[str])
    """Those whose end was recorded in this invocation."""


def child_started(run: ParentRun, event: ChildStarted) -> None:
    """A run inside this one is announced; the record is the one being folded."""
    run.children.setdefault(event.child_id, run.sequence)
    run.ended.discard(event.child_id)


def child_ended(run: ParentRun, event: ChildEnded) -> None:
    """It rests, or its invocation is over."""
    run.ended.add(event.child_id)


CHILDREN: Final[Changes] = {ChildStarted: child_started, ChildEnded: child_ended}
"""What the events of runs inside change."""

"""Answers that an earlier, cut-off beginning of this execution of the phase has paid for."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Sequence

import attrs

from orchestrator.workflow.components.calling import MALFORMED, result_of
from orchestrator.workflow.components.execution import current_execution
from orchestrator.workflow.components.roles import STATUSES
from orchestrator.workflow.components.subagentresult import SubagentResult
from orchestrator_events.event import Event
from orchestrator_events.workflow import SubagentFinished, SubagentSpawned

__all__ = ["Earlier"]


@attrs.define(eq=False)
class Earlier:
    """Results by what was asked; each is given once, in the order in which they were asked for."""

    results: dict[tuple[str, str], deque[SubagentResult]]

    @classmethod
    def of(cls, history: Sequence[Event], phase: str) -> Earlier:
        """The results in the events of the current execution that hold an answer, be it no output of its role.

        A call that failed, ran out of time or was cut off is made again.
        """
        results: dict[tuple[str, str], deque[SubagentResult]] = defaultdict(deque)
        asked: dict[str, SubagentSpawned] = {}
        for event in current_execution(history, phase):
            if isinstance(event, SubagentSpawned):
                asked[event.subagent_id] = event
            elif isinstance(event, SubagentFinished) and is_known(event) and event.subagent_id in asked:
                call = asked[event.subagent_id]
                results[call.role, asked_for(call)].append(result_of(call.role, event))
        return cls(results)

    def taken(self, role: str, context_digest: str) -> SubagentResult | None:
        """The next result of a role for a context; None when there is none left."""
        waiting = self.results.get((role, context_digest))
        return waiting.popleft() if waiting else None


def asked_for(call: SubagentSpawned) -> str:
    """Digest of the context that the phase gave, whatever was made of it at the gate."""
    given = json.loads(call.context.data)
    return str(given.get("asked", call.context.digest)) if "prompt" in given else call.context.digest


def is_known(event: SubagentFinished) -> bool:
    """Whether the call has an answer that can be given again."""
    return event.status in STATUSES or event.error.startswith(MALFORMED)

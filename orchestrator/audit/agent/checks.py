"""Which checks follow an agent run."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.agent.run import AgentRun
from orchestrator.audit.agent.actions import Actions
from orchestrator.audit.agent.conversation import Conversation
from orchestrator.audit.agent.endings import Endings
from orchestrator.audit.agent.requests import Requests
from orchestrator.audit.agent.spending import Spending
from orchestrator.audit.agent.turns import Turns
from orchestrator.audit.agent.verifications import Verifications
from orchestrator.audit.trail import Check

__all__ = ["agent_checks"]


def agent_checks() -> Iterator[Check[AgentRun]]:
    """Fresh ones, in the order they look."""
    yield Turns()
    yield Requests()
    yield Actions()
    yield Conversation()
    yield Verifications()
    yield Spending()
    yield Endings()

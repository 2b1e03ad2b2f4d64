"""The agent loop (contracts 2 and 3): a model takes turns with tools until it answers or a limit ends it."""

from __future__ import annotations

from orchestrator.agent.cancelling import Cancellation
from orchestrator.agent.engine import Agent, Parent
from orchestrator.agent.feed import AgentEvent
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.opening import NoProviderError, UnknownProviderError
from orchestrator.agent.outcome import (
    AgentCancelledError,
    AgentCompleted,
    AgentEndedError,
    AgentFailedError,
    AgentIncomplete,
    AgentInterruptedError,
    AgentReport,
    AgentRunReport,
)
from orchestrator.agent.ports import (
    Block,
    CallRequest,
    Message,
    Provider,
    ProviderCallError,
    Reply,
    Tool,
    ToolCall,
    ToolOutcome,
    Transcript,
    TurnRequest,
)
from orchestrator.agent.transcript import JournaledTranscript, MemoryTranscript
from orchestrator.agent.verifiers import Verifier, VerifyRequest

__all__ = [
    "Agent",
    "AgentCancelledError",
    "AgentCompleted",
    "AgentEndedError",
    "AgentEvent",
    "AgentFailedError",
    "AgentIncomplete",
    "AgentInterruptedError",
    "AgentLimits",
    "AgentReport",
    "AgentRunReport",
    "Block",
    "CallRequest",
    "Cancellation",
    "JournaledTranscript",
    "MemoryTranscript",
    "Message",
    "NoProviderError",
    "Parent",
    "Provider",
    "ProviderCallError",
    "Reply",
    "Tool",
    "ToolCall",
    "ToolOutcome",
    "Transcript",
    "TurnRequest",
    "UnknownProviderError",
    "Verifier",
    "VerifyRequest",
]

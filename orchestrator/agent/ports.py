"""What an agent is made of: a provider of answers, tools, and a transcript. Amplifier's parts are adapted to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from orchestrator.jsondata import JSON
from orchestrator_events.budget import Usage

__all__ = [
    "Block",
    "CallRequest",
    "Message",
    "Provider",
    "ProviderCallError",
    "Reply",
    "Tool",
    "ToolCall",
    "ToolOutcome",
    "Transcript",
    "TurnRequest",
]

Message = Mapping[str, JSON]
"""One message: role, content (text or a list of blocks), and tool_calls [{id, tool, arguments}] of an assistant's,
tool_call_id and name of a tool's. A JSON object; never changed once it is made."""

Block = Mapping[str, JSON]
"""One block of an answer: its type (text, thinking, tool_call …) and what that type has."""


@attrs.frozen(kw_only=True)
class ToolCall:
    """What a model asks a tool to do."""

    id: str
    tool: str
    arguments: Mapping[str, JSON]


@attrs.frozen(kw_only=True)
class TurnRequest:
    """What a provider is asked."""

    run_id: str
    turn: int
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    """Tools that the model may ask for; none in the closing call."""
    model: str
    """Empty: the provider chooses."""
    parameters: Mapping[str, JSON]
    max_tokens: int | None
    seconds: float | None
    """Time the call has; enforced by the engine either way."""
    idempotency_key: str
    delta: Callable[[int, str, str], None] | None = attrs.field(default=None, repr=False, eq=False)
    """To be told (block index, block type, piece) while the answer is written; None: nobody listens."""


@attrs.frozen(kw_only=True)
class Reply:
    """What a provider answers."""

    blocks: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    finish_reason: str = ""
    metadata: Mapping[str, JSON] = attrs.field(factory=dict)
    """Whatever else has to be kept with the assistant's message."""

    @property
    def text(self) -> str:
        """The text blocks, joined by empty lines; thinking is not in it."""
        return "\n\n".join(str(block.get("text", "")) for block in self.blocks if block.get("type") == "text")


class ProviderCallError(Exception):
    """A call failed; `is_retryable` says whether another try may succeed, `retry_after` when, seconds."""

    def __init__(
        self,
        reason: str,
        *,
        is_retryable: bool = False,
        status_code: int | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_retryable = is_retryable
        self.status_code = status_code
        self.retry_after = retry_after
        self.usage = usage


class Provider(Protocol):
    """Answers one request at a time with text and tool calls. Untrusted: it may raise, hang, flood or lie.

    Raise ProviderCallError (its `__cause__` is re-raised unchanged to the host) or anything else, which is not
    tried again.
    """

    name: str

    async def complete(self, request: TurnRequest) -> Reply:
        """One answer."""
        ...


@attrs.frozen(kw_only=True)
class ToolOutcome:
    """What came of a tool call; `output` is what the model reads."""

    is_success: bool
    output: str
    data: JSON = None
    """The structured result, where the tool gives one: never parsed back from `output`."""


@attrs.frozen(kw_only=True)
class CallRequest:
    """What a tool is given."""

    run_id: str
    call_id: str
    arguments: Mapping[str, JSON]
    seconds: float | None


class Tool(Protocol):
    """Something a model may have done. Untrusted in time and in what it returns."""

    name: str
    description: str
    schema: Mapping[str, JSON]
    """JSON Schema of the arguments."""
    is_idempotent: bool
    """Whether it may be run again when nobody knows whether it ran."""

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Do it; raising is a failed call, whose text the model reads."""
        ...


class Transcript(Protocol):
    """The conversation. The engine's own is in memory and journaled; in Amplifier it is the kernel's context."""

    async def add(self, message: Message) -> None:
        """One more message at the end."""
        ...

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """The messages of one request, as much as fits; compaction is the transcript's own business."""
        ...

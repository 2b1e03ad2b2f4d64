"""Events of the agent loop (contracts 2 and 3): turns of a model, actions of its tools, verifications.

Names that Amplifier's kernel defines are the kernel's own; the others are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Fact, Gate, Live
from orchestrator_events.verdict import CaseResult

__all__ = [
    "ActionDenied",
    "ActionFinished",
    "ActionStarted",
    "ActionsSettled",
    "AnswerGiven",
    "AnswerProposed",
    "CancelCompleted",
    "CancelRequested",
    "ContentBlockDelta",
    "ContentBlockEnd",
    "ContentBlockStart",
    "ContextInjected",
    "HarnessWarned",
    "MessageAdded",
    "PromptComplete",
    "PromptSubmit",
    "ProviderError",
    "ProviderRequest",
    "ProviderResponse",
    "ProviderRetry",
    "ThinkingDelta",
    "ThinkingFinal",
    "ToolError",
    "ToolPost",
    "ToolPre",
    "TurnAbandoned",
    "TurnAnswered",
    "TurnEnded",
    "TurnStarted",
    "VerificationFinished",
]


@attrs.frozen(kw_only=True)
class PromptSubmit(Gate):
    """May the agent work on this prompt?"""

    name: ClassVar[str] = "prompt:submit"
    modifiable: ClassVar[tuple[str, ...]] = ("prompt",)
    prompt: Annotated[str, "What the user asks."]


@attrs.frozen(kw_only=True)
class ProviderRequest(Gate):
    """May the model be called?"""

    name: ClassVar[str] = "provider:request"
    modifiable: ClassVar[tuple[str, ...]] = ("messages", "model", "max_tokens")
    turn: Annotated[int, "Number of the turn, from 1."]
    provider: Annotated[str, "Name of the provider."]
    model: Annotated[str, "Name of the model; empty where the provider chooses."]
    messages: Annotated[tuple[str, ...], "The messages as they would be sent, each a JSON object."]
    max_tokens: Annotated[int | None, "Output tokens asked for; None where nothing limits them."]
    key: Annotated[str, "Idempotency key of the call."]

    def injected(self, texts: Sequence[tuple[str, str]]) -> Self:
        """The request with what subscribers injected, so that it is reserved for, too."""
        return attrs.evolve(self, messages=(*self.messages, *(text for _, text in texts)))


@attrs.frozen(kw_only=True)
class ProviderResponse(Gate):
    """May this answer be used?"""

    name: ClassVar[str] = "provider:response"
    modifiable: ClassVar[tuple[str, ...]] = ("reply",)
    turn: Annotated[int, "Number of the turn, from 1."]
    provider: Annotated[str, "Name of the provider."]
    reply: Annotated[str, "JSON object of the answer: content, tool_calls, finish_reason, usage."]


@attrs.frozen(kw_only=True)
class ToolPre(Gate):
    """May this tool be called?"""

    name: ClassVar[str] = "tool:pre"
    modifiable: ClassVar[tuple[str, ...]] = ("tool_input",)
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "The model's id of the call."]
    tool_name: Annotated[str, "Name of the tool."]
    tool_input: Annotated[str, "JSON object of the arguments."]


@attrs.frozen(kw_only=True)
class ToolPost(Gate):
    """May this result be used?"""

    name: ClassVar[str] = "tool:post"
    modifiable: ClassVar[tuple[str, ...]] = ("is_success", "output")
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "The model's id of the call."]
    tool_name: Annotated[str, "Name of the tool."]
    tool_input: Annotated[str, "JSON object of the arguments as they were sent."]
    is_success: Annotated[bool, "Whether the tool says it did what was asked."]
    output: Annotated[str, "What the model would read."]


@attrs.frozen(kw_only=True)
class AnswerProposed(Gate):
    """May the agent finish with this answer? A denial sends it on, with the reason."""

    name: ClassVar[str] = "answer:proposed"
    turn: Annotated[int, "Number of the turn, from 1."]
    answer: Annotated[str, "The final text."]


@attrs.frozen(kw_only=True)
class MessageAdded(Fact):
    """A message joined the transcript."""

    name: ClassVar[str] = "message:added"
    role: Annotated[str, "system, developer, user, assistant or tool."]
    message: Annotated[Blob, "The message, a JSON object."]
    origin: Annotated[str, "prompt, model, tool, injection, harness or synthetic."]


@attrs.frozen(kw_only=True)
class ContextInjected(Fact):
    """A gate's subscriber added text to what the model reads."""

    name: ClassVar[str] = "context:injected"
    gate: Annotated[str, "Wire name of the gate."]
    source: Annotated[str, "Name of the subscriber."]
    role: Annotated[str, "Role that the text has."]
    text: Annotated[Blob, "The text."]
    is_ephemeral: Annotated[bool, "True when exactly one request carries it; else it joins the transcript."]
    is_appended: Annotated[bool, "True when it is put at the end of the last tool result."] = False


@attrs.frozen(kw_only=True)
class TurnStarted(Fact):
    """The intent to call the model, committed before the call, with what is reserved for it."""

    name: ClassVar[str] = "turn:started"
    turn: Annotated[int, "Number of the turn, from 1."]
    provider: Annotated[str, "Name of the provider."]
    model: Annotated[str, "Name of the model; empty where the provider chooses."]
    messages: Annotated[tuple[Blob, ...], "The messages as sent, each a JSON object."]
    tools: Annotated[tuple[str, ...], "Names of the tools that were offered."]
    parameters: Annotated[str, "JSON object of the other parameters of the request."]
    reservation: Annotated[Reservation, "Worst case held until the call is settled, with its idempotency key."]
    is_closing: Annotated[bool, "True for the one call without tools after a limit was reached."] = False
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers decided."] = ()


@attrs.frozen(kw_only=True)
class ProviderRetry(Fact):
    """The call failed in a way that may pass; it is made again under the same key, within the same turn."""

    name: ClassVar[str] = "provider:retry"
    turn: Annotated[int, "Number of the turn, from 1."]
    provider: Annotated[str, "Name of the provider."]
    key: Annotated[str, "Idempotency key of the call."]
    retry: Annotated[int, "Number of this retry, from 1."]
    reason: Annotated[str, "Why the call failed."]
    wait_us: Annotated[int, "How long is waited before the next try, microseconds."]
    charge: Annotated[Charge, "What the failed try was charged."]


@attrs.frozen(kw_only=True)
class ProviderError(Fact):
    """The call failed for good."""

    name: ClassVar[str] = "provider:error"
    turn: Annotated[int, "Number of the turn, from 1."]
    provider: Annotated[str, "Name of the provider."]
    error_type: Annotated[str, "Type of the error."]
    message: Annotated[str, "What it says."]
    is_retryable: Annotated[bool, "Whether the provider thinks that another try may succeed."] = False
    status_code: Annotated[int | None, "HTTP status; None where there is none."] = None


@attrs.frozen(kw_only=True)
class TurnAbandoned(Fact):
    """A call's outcome is unknown or of no use; it is charged, and the turn begins anew."""

    name: ClassVar[str] = "turn:abandoned"
    turn: Annotated[int, "Number of the turn, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    charge: Annotated[Charge, "What the call was charged."]
    reason: Annotated[str, "Why its answer is not used."]


@attrs.frozen(kw_only=True)
class TurnAnswered(Fact):
    """The model answered; the answer is stored before anything is done with it."""

    name: ClassVar[str] = "turn:answered"
    turn: Annotated[int, "Number of the turn, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    reply: Annotated[Blob, "JSON object of the answer: content, tool_calls, finish_reason."]
    wants_tools: Annotated[bool, "True when it asks for tools."]
    charge: Annotated[Charge, "What the call was charged."]
    duration_us: Annotated[int, "Time the call took, microseconds."]
    decisions: Annotated[tuple[DecisionTaken, ...], "What the subscribers at provider:response decided."] = ()


@attrs.frozen(kw_only=True)
class ActionStarted(Fact):
    """The intent to run a tool, committed before it runs."""

    name: ClassVar[str] = "action:started"
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "The model's id of the call, or the harness's own."]
    tool: Annotated[str, "Name of the tool."]
    input: Annotated[Blob, "JSON object of the arguments as sent."]
    is_idempotent: Annotated[bool, "True when it may be run again after a crash."] = False
    is_automatic: Annotated[bool, "True when the harness, not the model, asked for it."] = False
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers and the harness decided."] = ()


@attrs.frozen(kw_only=True)
class ActionDenied(Fact):
    """A tool call was refused: it is no action, and the model is told why and what to do instead."""

    name: ClassVar[str] = "action:denied"
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "The model's id of the call."]
    tool: Annotated[str, "Name of the tool."]
    input: Annotated[Blob, "JSON object of the arguments."]
    rule: Annotated[str, "Rule or subscriber that refused it."]
    reason: Annotated[str, "Why."]
    suggestion: Annotated[str, "What to do instead; empty without one."] = ""
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers and the harness decided."] = ()


@attrs.frozen(kw_only=True)
class ActionFinished(Fact):
    """A tool call has a result, its own or a synthetic one."""

    name: ClassVar[str] = "action:finished"
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "Id of the call."]
    tool: Annotated[str, "Name of the tool."]
    is_success: Annotated[bool, "Whether the tool did what was asked."]
    output: Annotated[Blob, "What the model reads."]
    outcome: Annotated[str, "done, failed, unknown tool, interrupted, outcome unknown or withheld."]
    duration_us: Annotated[int, "Time the tool took, microseconds."] = 0
    decisions: Annotated[tuple[DecisionTaken, ...], "What the subscribers at tool:post decided."] = ()


@attrs.frozen(kw_only=True)
class ToolError(Fact):
    """A tool raised, or there is none of that name."""

    name: ClassVar[str] = "tool:error"
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "Id of the call."]
    tool_name: Annotated[str, "Name of the tool."]
    error_type: Annotated[str, "Type of the error."]
    message: Annotated[str, "What it says."]


@attrs.frozen(kw_only=True)
class ActionsSettled(Fact):
    """Every tool call of the turn has a result in the transcript."""

    name: ClassVar[str] = "actions:settled"
    turn: Annotated[int, "Number of the turn, from 1."]


@attrs.frozen(kw_only=True)
class HarnessWarned(Fact):
    """A rule let an action pass with a warning, which the model reads."""

    name: ClassVar[str] = "harness:warned"
    turn: Annotated[int, "Number of the turn, from 1."]
    call_id: Annotated[str, "Id of the call."]
    warnings: Annotated[str, "The warnings, joined."]


@attrs.frozen(kw_only=True)
class VerificationFinished(Fact):
    """The work so far was verified, by the model's own call or by the harness."""

    name: ClassVar[str] = "verification:finished"
    turn: Annotated[int, "Number of the turn, from 1."]
    is_automatic: Annotated[bool, "True when the harness, not the model, asked for it."]
    passed: Annotated[int, "Cases that passed."]
    total: Annotated[int, "Cases that there are."]
    failing: Annotated[tuple[CaseResult, ...], "Every case that did not pass, where the verifier names them."] = ()
    error: Annotated[str, "Why there is no verdict; empty when there is one."] = ""
    duration_us: Annotated[int, "Time it took, microseconds."] = 0


@attrs.frozen(kw_only=True)
class TurnEnded(Fact):
    """The model is to be called again."""

    name: ClassVar[str] = "turn:ended"
    turn: Annotated[int, "Number of the turn, from 1."]
    reason: Annotated[str, "Why the agent goes on: tools answered, the answer was refused, it was empty."] = ""


@attrs.frozen(kw_only=True)
class AnswerGiven(Fact):
    """The agent's final answer."""

    name: ClassVar[str] = "answer:given"
    answer: Annotated[Blob, "The final text; of a run that reached a limit, the closing one."]
    decisions: Annotated[tuple[DecisionTaken, ...], "What the subscribers at answer:proposed decided."] = ()


@attrs.frozen(kw_only=True)
class PromptComplete(Fact):
    """The prompt is answered."""

    name: ClassVar[str] = "prompt:complete"
    response_preview: Annotated[str, "The first 200 characters of the answer."]
    length: Annotated[int, "Length of the answer, characters."]


@attrs.frozen(kw_only=True)
class CancelRequested(Fact):
    """The host asked the agent to stop."""

    name: ClassVar[str] = "cancel:requested"
    is_immediate: Annotated[bool, "True when running tools are interrupted, too."]
    running: Annotated[tuple[str, ...], "Names of the tools that were running."] = ()


@attrs.frozen(kw_only=True)
class CancelCompleted(Fact):
    """The agent has stopped; the transcript is whole."""

    name: ClassVar[str] = "cancel:completed"
    was_immediate: Annotated[bool, "True when running tools were interrupted."]


@attrs.frozen(kw_only=True)
class ContentBlockStart(Live):
    """A block of the model's answer begins."""

    name: ClassVar[str] = "content_block:start"
    turn: Annotated[int, "Number of the turn, from 1."]
    block_index: Annotated[int, "Number of the block in the answer, from 0."]
    block_type: Annotated[str, "text, thinking, tool_call, or another that the provider names."]
    total_blocks: Annotated[int | None, "Blocks of the answer; None while it is being written."] = None


@attrs.frozen(kw_only=True)
class ContentBlockDelta(Live):
    """A piece of a block."""

    name: ClassVar[str] = "content_block:delta"
    turn: Annotated[int, "Number of the turn, from 1."]
    block_index: Annotated[int, "Number of the block in the answer, from 0."]
    block_type: Annotated[str, "text, thinking, tool_call, or another that the provider names."]
    delta: Annotated[str, "The piece."]


@attrs.frozen(kw_only=True)
class ContentBlockEnd(Live):
    """A block of the model's answer is whole."""

    name: ClassVar[str] = "content_block:end"
    turn: Annotated[int, "Number of the turn, from 1."]
    block_index: Annotated[int, "Number of the block in the answer, from 0."]
    block: Annotated[str, "JSON object of the block."]
    total_blocks: Annotated[int | None, "Blocks of the answer; None while it is being written."] = None


@attrs.frozen(kw_only=True)
class ThinkingDelta(Live):
    """A piece of what the model thinks."""

    name: ClassVar[str] = "thinking:delta"
    turn: Annotated[int, "Number of the turn, from 1."]
    delta: Annotated[str, "The piece."]


@attrs.frozen(kw_only=True)
class ThinkingFinal(Live):
    """What the model thought, whole."""

    name: ClassVar[str] = "thinking:final"
    turn: Annotated[int, "Number of the turn, from 1."]
    text: Annotated[str, "The thinking."]

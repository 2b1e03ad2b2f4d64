"""Conversation: each message is what was answered, run or injected; nothing stands between a call and its result."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.plainjson import read_object
from orchestrator.agent.ports import Message
from orchestrator.agent.run import AgentRun
from orchestrator.audit.agent.requests import has_own_transcript
from orchestrator.audit.attempts import table_of
from orchestrator_events.agent import MessageAdded, TurnStarted
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.record import Record

__all__ = ["Conversation"]

ORIGINS = frozenset({"prompt", "model", "tool", "injection", "harness", "synthetic"})


@attrs.define(eq=False)
class Conversation:
    """Follows the messages of the run's own conversation."""

    waiting: list[str] = attrs.Factory(list[str])
    """Calls of the last assistant's message that have no result in the conversation yet, in order."""
    is_prompted: bool = False
    is_own: bool = False
    """Whether the conversation is the run's own, which nothing can keep from being whole."""
    name: str = attrs.field(default="conversation", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Messages that do not follow."""
        event = record.event
        if isinstance(event, MessageAdded):
            yield from self.added(run, event)
        elif isinstance(event, TurnStarted):
            if self.waiting:
                yield f"the model is called, but the call {self.waiting[0]!r:.80} has no result in the conversation"
            if not self.is_prompted:
                yield "the model is called before the prompt is in the conversation"
        elif isinstance(event, ExecutionStart):
            self.is_own = self.is_own or has_own_transcript(table_of(event.identity))
        elif isinstance(event, ExecutionEnd) and self.waiting and self.is_own:  # a host's own may refuse messages
            yield f"the invocation ends, but the call {self.waiting[0]!r:.80} has no result in the conversation"

    def added(self, run: AgentRun, event: MessageAdded) -> Iterator[str]:
        """One message: its place, then where it says that it comes from."""
        message = read_object(event.message.data.decode())
        if message.get("role") != event.role:
            yield f"is recorded as {event.role!r:.80}, the message is {message.get('role')!r:.80}"
        if event.role == "tool":
            yield from self.result_placed(message)
        elif self.waiting:
            yield f"a message of {event.role!r:.80} stands before the result of the call {self.waiting[0]!r:.80}"
        if event.role == "assistant":
            calls = message.get("tool_calls")
            self.waiting = (
                [str(call.get("id")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
            )
        if event.origin not in ORIGINS:
            yield f"comes from {event.origin!r:.80}, which there is not"
        yield from self.sourced(run, event, message)

    def result_placed(self, message: Message) -> Iterator[str]:
        """Results stand in the order of the calls, each once."""
        call_id = str(message.get("tool_call_id"))
        if not self.waiting or call_id != self.waiting[0]:
            expected = repr(self.waiting[0])[:80] if self.waiting else "none"
            yield f"the result of {call_id!r:.80} stands where that of {expected} belongs"
        if call_id in self.waiting:
            self.waiting.remove(call_id)

    def sourced(self, run: AgentRun, event: MessageAdded, message: Message) -> Iterator[str]:
        """What a message says is what its origin says."""
        if event.origin == "prompt":
            if self.is_prompted:
                yield "the prompt is added twice"
            self.is_prompted = True
        elif event.origin == "model":
            if run.answer is None or dict(message) != dict(run.answer.message()):
                yield "is another message than the model answered"
            elif run.is_answer_told:
                yield "adds the model's answer twice"
        elif event.origin == "injection":
            due = run.deferred[0] if run.deferred else None
            if due is None or (message.get("role"), message.get("content")) != (due.role, due.text.data.decode()):
                yield "is said to be injected, and no gate's subscriber did that"
        elif event.role == "tool":
            yield from resulted(run, message, event.origin)

    def end(self, run: AgentRun) -> Iterator[str]:  # noqa: ARG002 -- a run may be cut off anywhere
        """Nothing."""
        yield from ()


def resulted(run: AgentRun, message: Message, origin: str) -> Iterator[str]:
    """A result in the conversation is the recorded one, with the warnings of the harness."""
    call_id = str(message.get("tool_call_id"))
    result = run.results.get(call_id)
    if result is None:
        yield f"is the result of {call_id!r:.80}, of which no record tells"
        return
    warnings = run.warnings.get(call_id)
    content = f"{result.output}\nWarning: {warnings}" if warnings else result.output
    if message.get("content") != content:
        yield f"is another result of {call_id!r:.80} than was recorded"
    if origin != ("tool" if call_id in run.intents else "synthetic"):
        yield f"is a result of {call_id!r:.80} that is said to come from {origin!r:.80}"

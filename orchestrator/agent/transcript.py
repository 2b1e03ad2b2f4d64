"""The conversation: our own one is what the records say, and every message that joins any is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import attrs

from orchestrator.agent.invocation import Invocation, StoppedError
from orchestrator.agent.messages import WrittenMessage
from orchestrator.agent.ports import Message, Provider
from orchestrator.agent.run import AgentRun
from orchestrator.agent.verdicts import automatic_message
from orchestrator.supervision import DeadlineError
from orchestrator_events.agent import MessageAdded
from orchestrator_events.patience import settled

__all__ = [
    "JournaledTranscript",
    "MemoryTranscript",
    "add",
    "close_conversation",
    "messages_for",
    "tell_answer",
    "tell_results",
    "tell_verdicts",
]


STORING_S = 30.0
"""What a host's transcript may take for one message, seconds: one that hangs must not hang the run."""
CLOSING_S = 2.0
"""The same on the way out, where every message may be refused so."""


@attrs.define(eq=False)
class JournaledTranscript:
    """The run's own conversation, of nothing but recorded messages, so that a resume finds it again."""

    run: AgentRun

    async def add(self, message: Message) -> None:
        """Nothing to do: the record is the message."""

    async def for_request(self, provider: Provider) -> Sequence[Message]:  # noqa: ARG002 -- the port's signature
        """All of it."""
        return tuple(self.run.messages)


def own_list(messages: Iterable[Message]) -> list[Message]:
    """A list that nobody else changes."""
    return list(messages)


@attrs.define(eq=False)
class MemoryTranscript:
    """A conversation in memory that may go on over several runs, from any messages there are."""

    messages: list[Message] = attrs.field(factory=list, converter=own_list)

    async def add(self, message: Message) -> None:
        """One more message at the end."""
        self.messages.append(message)

    async def for_request(self, provider: Provider) -> Sequence[Message]:  # noqa: ARG002 -- the port's signature
        """All of it."""
        return tuple(self.messages)


async def add(it: Invocation, message: Message, origin: str) -> None:
    """Have a message join the transcript, and record that it did. Raises StoppedError where it would not."""
    made = it.writing.new(message)
    if not has_own_conversation(it):
        try:
            own = json.loads(made.text)  # a copy that the transcript may change
            await settled(it.transcript.add(own), storing_seconds(it))
        except Exception as error:
            raise StoppedError(error) from error
    it.fire(MessageAdded(role=str(made.message.get("role", "")), message=made.blob, origin=origin))


def storing_seconds(it: Invocation) -> float:
    """What a host's transcript may take for one message; on the way out not long, whatever time there is."""
    left = it.remaining_seconds()
    most = STORING_S if left is None else min(left, STORING_S)
    return CLOSING_S if it.is_ending else max(most, CLOSING_S)


async def messages_for(it: Invocation) -> list[WrittenMessage]:
    """The messages of one request, as the transcript gives them.

    Raises DeadlineError when the run's time is up by then, StoppedError when the transcript fails.
    """
    try:
        return await it.supervisor.effect(conversation(it), it.remaining_seconds())
    except DeadlineError:
        raise
    except Exception as error:
        raise StoppedError(error) from error


async def conversation(it: Invocation) -> list[WrittenMessage]:
    """The messages with their texts: the run's own has them, a host's are looked up."""
    if has_own_conversation(it):
        return list(it.run.written)
    return it.writing.conversation(await it.transcript.for_request(it.provider))


def has_own_conversation(it: Invocation) -> bool:
    """Whether the conversation is the run's own, and in nobody else's hands."""
    transcript = it.transcript
    return type(transcript) is JournaledTranscript and transcript.run is it.run


async def tell_answer(it: Invocation) -> None:
    """Add the model's answer, unless it is there already or there is nothing in it.

    What a gate injected beside a plain answer stands before it: nothing may follow the last word of a run.
    """
    answer = it.run.answer
    if answer is None or it.run.is_answer_told or answer.is_empty:
        return
    if not answer.calls:
        await tell_injections(it)
    await add(it, answer.message(), "model")


async def tell_results(it: Invocation) -> None:
    """Add the result of every tool call of the turn, in the order of the calls, and then what waited."""
    run = it.run
    for call in () if run.answer is None else run.answer.calls:
        result = run.results.get(call.id)
        if result is None or call.id in run.told:
            continue
        warnings = run.warnings.get(call.id)
        content = f"{result.output}\nWarning: {warnings}" if warnings else result.output
        message = {"role": "tool", "tool_call_id": call.id, "name": call.tool, "content": content}
        await add(it, message, "tool" if call.id in run.intents else "synthetic")
    await tell_verdicts(it)
    await tell_injections(it)


async def tell_verdicts(it: Invocation) -> None:
    """Add what automatic verifications said; never called between a tool call and its result."""
    for verdict in tuple(it.run.unread):
        await add(it, automatic_message(it.parts.harness, verdict), "harness")


async def tell_injections(it: Invocation) -> None:
    """Add the injections that have to join the transcript; never called between a tool call and its result."""
    for each in tuple(it.run.deferred):
        message = {
            "role": each.role,
            "content": each.text.text or "",
            "metadata": {"source": each.source, "event": each.gate},
        }
        await add(it, message, "injection")


async def close_conversation(it: Invocation, text: str) -> None:
    """Have the conversation end with an assistant's message, with this one where the model's own is missing."""
    written = it.run.written
    if not written or not it.run.is_prompted:
        return
    last = next(
        (each.message for each in reversed(written) if each.message.get("role") not in {"system", "developer"}), {}
    )
    if last.get("role") != "assistant" or last.get("tool_calls"):
        await add(it, {"role": "assistant", "content": [{"type": "text", "text": text}]}, "synthetic")

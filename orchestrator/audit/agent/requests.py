"""Requests: what was sent to the model is the conversation as recorded, with what was injected, and nothing else.

A conversation that the host keeps elsewhere (Amplifier's context) may hold what this run never saw; then only its own
conversation, which `Conversation` follows, can be held against the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import attrs

from orchestrator.agent.plainjson import read_object
from orchestrator.agent.ports import Message
from orchestrator.agent.run import AgentRun
from orchestrator.audit.agent.composing import CLOSING_REMINDER, composed
from orchestrator.audit.attempts import table_of
from orchestrator.jsondata import JSON
from orchestrator_events.agent import TurnStarted
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record

__all__ = ["Requests", "has_own_transcript"]


@attrs.define(eq=False)
class Requests:
    """Builds each request again from the records before it."""

    identity: Mapping[str, JSON] = attrs.Factory(dict[str, JSON])
    name: str = attrs.field(default="requests", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """A request that is another than the records give."""
        event = record.event
        if isinstance(event, ExecutionStart):
            self.identity = self.identity or table_of(event.identity)
        elif isinstance(event, TurnStarted) and has_own_transcript(self.identity) and not is_modified(event):
            sent = [read_object(message.data.decode()) for message in event.messages]
            yield from differences(sent, self.expected(run, event), has_notes=self.has_notes)

    @property
    def has_notes(self) -> bool:
        """Whether there are rules or hints, which may add a note to any request."""
        harness = self.identity.get("harness")
        return isinstance(harness, dict) and bool(harness.get("rules") or harness.get("hints"))

    def expected(self, run: AgentRun, event: TurnStarted) -> list[Message]:
        """The request by the records, without a note of the harness."""
        made = composed(run.messages, run.waiting)
        system = self.identity.get("system")
        first: Message = {"role": "system", "content": system}
        if system and first not in made[:1]:
            made.insert(0, first)
        if event.is_closing:
            limit = run.exhausted.limit.replace("_", " ") if run.exhausted else "turns"
            made.append({"role": "user", "content": CLOSING_REMINDER.format(limit=limit)})
        return made

    def end(self, run: AgentRun) -> Iterator[str]:  # noqa: ARG002 -- every request has been read
        """Nothing."""
        yield from ()


def has_own_transcript(identity: Mapping[str, JSON]) -> bool:
    """Whether the conversation is the run's own, so that all of it is recorded."""
    request = identity.get("request")
    return isinstance(request, dict) and request.get("transcript") == "own"


def differences(sent: Sequence[Message], expected: Sequence[Message], *, has_notes: bool) -> Iterator[str]:
    """The first message that is another, is missing, or is one too many."""
    made = list(sent)
    if has_notes and len(sent) == len(expected) + 1:
        note = len(made) - 1 if not is_reminder(made[-1]) else len(made) - 2
        if note >= 0 and made[note].get("role") == "system":
            made.pop(note)
    for number, (one, other) in enumerate(zip(made, expected, strict=False), 1):
        if one != other:
            shown, told = json.dumps(dict(one)), json.dumps(dict(other))
            yield f"sends as message {number} {shown:.120}, the records give {told:.120}"
            return
    if len(made) != len(expected):
        yield f"sends {len(sent)} messages, the records give {len(expected)}"


def is_reminder(message: Message) -> bool:
    """Whether it is the one that asks for a closing answer."""
    content = message.get("content")
    return isinstance(content, str) and content.startswith(CLOSING_REMINDER.partition("{")[0])


def is_modified(event: TurnStarted) -> bool:
    """Whether a subscriber wrote the messages anew, which a decision says."""
    fields = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
    return "messages" in fields

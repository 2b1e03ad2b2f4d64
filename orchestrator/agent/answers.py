"""What a model answered, checked: blocks, and tool calls of which each has an id of its own."""

from __future__ import annotations

from collections.abc import Container, Mapping

import attrs

from orchestrator.agent.plainjson import dumped, plain, read_object
from orchestrator.agent.ports import Message, Reply
from orchestrator.jsondata import JSON

__all__ = ["WITHHELD", "Answer", "Call", "answer_of", "changed_answer", "read_answer"]

TOOL_BLOCKS = frozenset({"tool_call", "tool_use"})


@attrs.frozen(kw_only=True)
class Call:
    """A tool call as the model made it; `fault` says why it cannot be run, and is empty where it can."""

    id: str
    tool: str
    arguments: Mapping[str, JSON]
    fault: str = ""

    def fields(self) -> dict[str, JSON]:
        """The call as a JSON object; a fault is told where there is one."""
        fields: dict[str, JSON] = {"id": self.id, "tool": self.tool, "arguments": self.arguments}
        return {**fields, "fault": self.fault} if self.fault else fields


@attrs.frozen(kw_only=True)
class Answer:
    """One answer of a model. Whatever the provider gave, this is plain data."""

    blocks: tuple[Mapping[str, JSON], ...] = ()
    calls: tuple[Call, ...] = ()
    finish_reason: str = ""
    metadata: Mapping[str, JSON] = attrs.Factory(dict[str, JSON])

    @property
    def text(self) -> str:
        """The text blocks, joined by empty lines; thinking is not in it."""
        return Reply(blocks=self.blocks).text

    @property
    def is_empty(self) -> bool:
        """Whether it neither says anything nor asks for a tool."""
        return not self.calls and not self.text.strip()

    @property
    def content(self) -> str:
        """The answer as JSON text: content, tool_calls, finish_reason and metadata."""
        return dumped(self.fields())

    def fields(self) -> dict[str, JSON]:
        """The answer as a JSON object."""
        return {
            "content": list(self.blocks),
            "tool_calls": [call.fields() for call in self.calls],
            "finish_reason": self.finish_reason,
            "metadata": dict(self.metadata),
        }

    def message(self) -> Message:
        """The assistant's message."""
        made: dict[str, JSON] = {"role": "assistant", "content": [dict(block) for block in self.blocks]}
        if self.calls:
            made["tool_calls"] = [
                {"id": call.id, "tool": call.tool, "arguments": dict(call.arguments)} for call in self.calls
            ]
        if self.metadata:
            made["metadata"] = dict(self.metadata)
        return made

    def without_calls(self) -> Answer:
        """The answer as if no tool had been asked for."""
        blocks = tuple(block for block in self.blocks if block.get("type") not in TOOL_BLOCKS)
        return attrs.evolve(self, calls=(), blocks=blocks)


WITHHELD = Answer(finish_reason="withheld").content
"""What is recorded of an answer that a gate withheld."""


def answer_of(reply: Reply, turn: int) -> Answer:
    """A provider's reply, checked."""
    calls = [{"id": call.id, "tool": call.tool, "arguments": call.arguments} for call in reply.calls]
    fields = {
        "content": list(reply.blocks),
        "tool_calls": calls,
        "finish_reason": reply.finish_reason,
        "metadata": reply.metadata,
    }
    return checked(plain(fields), turn)


def read_answer(text: str, turn: int) -> Answer:
    """An answer from the JSON text of a record; ValueError where it is none."""
    return checked(read_object(text), turn)


def changed_answer(text: str, turn: int) -> Answer:
    """An answer from JSON text that anyone may have written; ValueError where it is none."""
    return checked(plain(read_object(text)), turn)


def checked(data: Mapping[str, JSON], turn: int) -> Answer:
    """An answer from plain data; ValueError where it is none."""
    content, calls, metadata = data.get("content") or [], data.get("tool_calls") or [], data.get("metadata") or {}
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not isinstance(calls, list):
        raise ValueError("content and tool_calls must be lists")  # noqa: TRY004 -- data of others
    made = checked_calls(calls, turn)
    blocks = [block if isinstance(block, dict) else {"type": "text", "text": str(block)} for block in content]
    return Answer(
        blocks=tuple(renamed(blocks, made)),
        calls=made,
        finish_reason=str(data.get("finish_reason") or ""),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def checked_calls(calls: list[JSON], turn: int) -> tuple[Call, ...]:
    """Each call with an id of its own, and what is wrong with it."""
    made: list[Call] = []
    taken = {str(each.get("id")) for each in calls if isinstance(each, dict)}
    seen: set[str] = set()
    for number, each in enumerate(calls, 1):
        fields = each if isinstance(each, dict) else {}
        given, fault = fields.get("id"), str(fields.get("fault") or "")
        call_id = given if isinstance(given, str) and given and given not in seen else ""
        if not call_id:
            fault = fault or ("another call has its id" if given in list(seen) else "it has no id") + ": make it again"
            call_id = free_id(f"call_{turn}_{number}", taken)
        seen.add(call_id)
        taken.add(call_id)
        made.append(checked_call(call_id, fields, fault))
    return tuple(made)


def checked_call(call_id: str, fields: Mapping[str, JSON], fault: str) -> Call:
    """One call; no arguments at all are none, which many tools take."""
    tool, arguments = fields.get("tool"), fields.get("arguments")
    if not isinstance(tool, str) or not tool:
        tool, fault = str(tool or ""), fault or "it names no tool"
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        arguments, fault = {}, fault or f"its arguments are a {type(arguments).__name__}, not an object"
    return Call(id=call_id, tool=tool, arguments=arguments, fault=fault)


def free_id(wanted: str, taken: Container[str]) -> str:
    """The id, or one like it that no other call has."""
    made = wanted
    while made in taken:
        made += "_"
    return made


def renamed(blocks: list[dict[str, JSON]], calls: tuple[Call, ...]) -> list[dict[str, JSON]]:
    """The blocks, those of tool calls with the ids that their calls now have."""
    ids = iter([call.id for call in calls])
    return [
        {**block, "id": next(ids, block.get("id"))} if block.get("type") in TOOL_BLOCKS else block for block in blocks
    ]

"""An answer as it comes in: strictly read, bounded, and known as far as it came when the call breaks off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from orchestrator.excerpt import excerpt
from orchestrator.generators.openai.credentials import NO_KEY, ApiKey
from orchestrator.generators.openai.decoding import SHOWN, decoded
from orchestrator.generators.openai.failures import CallFailedError, lost, passing, told_failure
from orchestrator.generators.openai.reported import Reported, reported
from orchestrator_events.budget import Usage
from orchestrator_events.ledger import CHARACTERS_PER_TOKEN

__all__ = ["Reception"]


@attrs.define(eq=False)
class Reception:
    """What came of one answer so far."""

    limit: int
    """Largest answer, bytes of UTF-8."""
    progress: Callable[[int], None] | None = None
    """Told the output tokens so far, estimated, reasoning included."""
    key: ApiKey = NO_KEY
    parts: list[str] = attrs.field(factory=list[str], repr=False)
    size: int = 0
    characters: int = 0
    """Of text, reasoning and refusal, for the progress."""
    usage: Reported = attrs.Factory(Reported)
    finish: str = ""
    """Why the model stopped: stop, length, content_filter …; empty until it says so."""
    refusal: list[str] = attrs.field(factory=list[str], repr=False)
    has_tool_calls: bool = False
    is_ended: bool = False
    """Whether the stream said that it is over."""

    @property
    def text(self) -> str:
        """The answer so far; halves of a character that came in two pieces are joined."""
        joined = "".join(self.parts)
        if joined.isascii():
            return joined
        return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")

    def take(self, data: bytes) -> None:
        """Take one JSON document: a chunk of a stream, or a whole answer. Raises CallFailedError."""
        document = decoded(data, self.key)
        if not isinstance(document, Mapping):
            raise lost(f"answered with JSON that is {_kind(document)}, not an object")
        error = document.get("error")
        if error:
            raise CallFailedError(told_failure(error if isinstance(error, Mapping) else {"message": error}, self.key))
        if document.get("usage") is not None:
            self.usage = reported(document["usage"])
        choices = document.get("choices")
        if choices is not None and not isinstance(choices, list):
            raise lost(f"answered with choices that are {_kind(choices)}, not an array")
        for choice in choices or ():
            if not isinstance(choice, Mapping):
                raise lost(f"answered with a choice that is {_kind(choice)}, not an object")
            if choice.get("index") in (0, None):
                self._take_choice(choice)

    def counted(self) -> Usage | None:
        """What a call that broke off has used at least: what came is counted; None when nothing came."""
        tokens = -(-self.characters // CHARACTERS_PER_TOKEN)
        return Usage(output_tokens=tokens) if tokens else None

    def complete(self) -> str:
        """The whole answer; raises CallFailedError when what came is none, or is cut off."""
        if not (self.is_ended or self.finish):
            raise passing(f"ended its stream in the middle of the answer, after {self.size} bytes of it")
        refusal = "".join(self.refusal).strip()
        if refusal or self.finish == "content_filter":
            why = f": {excerpt(self.key.redacted(refusal), SHOWN)}" if refusal else " (its content filter held it back)"
            raise lost(f"refused to answer{why}")
        text = self.text
        if not text.strip():
            raise lost(self._emptiness())
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise lost(f"answered with a lone surrogate, which is no text, at character {error.start}") from None
        if self.key.is_in(text):
            raise lost("answered with the API key itself; the answer is not kept")
        return text

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        finish = choice.get("finish_reason")
        if isinstance(finish, str):
            self.finish = finish[:40]
        message = choice.get("delta", choice.get("message"))
        if message is None:
            return
        if not isinstance(message, Mapping):
            raise lost(f"answered with a message that is {_kind(message)}, not an object")
        self._take_text(message.get("content"))
        refusal = message.get("refusal")
        if isinstance(refusal, str):
            self.refusal.append(refusal)
        self.has_tool_calls = self.has_tool_calls or bool(message.get("tool_calls"))
        thoughts = (message.get("reasoning_content"), message.get("reasoning"), refusal)
        self._tell(sum(len(thought) for thought in thoughts if isinstance(thought, str)))

    def _take_text(self, content: object) -> None:
        if content is None or content == "":
            return
        if not isinstance(content, str):
            raise lost(f"answered with content that is {_kind(content)}, not a string")
        self.parts.append(content)
        self.size += len(content.encode("utf-8", "surrogatepass"))
        if self.size > self.limit:
            raise lost(f"was stopped because its answer is longer than {self.limit} bytes")
        self._tell(len(content))

    def _tell(self, characters: int) -> None:
        self.characters += characters
        if characters and self.progress is not None:
            self.progress(-(-self.characters // CHARACTERS_PER_TOKEN))

    def _emptiness(self) -> str:
        if self.has_tool_calls:
            return "answered with a tool call and no text"
        if self.finish == "length":
            return "used up its output tokens before it wrote any text: raise max_tokens"
        return "answered with no text"


def _kind(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return "null"

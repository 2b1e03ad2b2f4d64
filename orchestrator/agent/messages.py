"""Messages with their texts: a message is written, hashed and made ready for sending once, however often it is sent.

What a conversation costs per turn must not grow with it, so what is made of a message stays with it, found again by
its text. Not by the object: a host's transcript may give other objects each time, or change one between two turns.
So a host's messages are looked at each time, but only for what they are made of, which `marshal` tells several times
faster than JSON is written, and exactly: it takes no object for another that equals it, and no other order of keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from marshal import dumps
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.agent.plainjson import dumped, plain
from orchestrator.agent.ports import Message
from orchestrator.agent.readonly import read_only
from orchestrator.jsondata import JSON
from orchestrator_events.blob import Blob

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["BLOB", "TEXT", "Writing", "WrittenMessage"]


@attrs.frozen(eq=False)
class WrittenMessage:
    """A message, its text, and the blob that records name it by."""

    message: Message
    text: str
    blob: Blob

    @classmethod
    def of(cls, blob: Blob) -> WrittenMessage:
        """The message that a record names."""
        text = blob.text or "{}"
        return cls(json.loads(text), text, blob)


WITHOUT_REFERENCES: Final = 2
"""The version of marshal's format that is the same for the same data, however it is shared."""
TEXT: Final = attrgetter("text")
"""The text of a written message, or of a blob."""
BLOB: Final = attrgetter("blob")
"""The blob of a written message."""


@attrs.define(eq=False)
class Writing:
    """Every message that one invocation has written or sent, by its text."""

    secrets: Secrets | None = None
    """What no record may hold."""
    known: dict[str, WrittenMessage] = attrs.Factory(dict[str, WrittenMessage])
    seen: dict[bytes, WrittenMessage] = attrs.Factory(dict[bytes, WrittenMessage])
    """Those of a host's transcript, by what they are made of."""
    ready: dict[str | None, Message] = attrs.Factory(dict["str | None", Message])
    """Those that were sent, as they are sent."""

    def written(self, message: object) -> WrittenMessage:
        """The message, whatever it is, as plain data with its text; the very same one for the same text."""
        text = text_of(message)
        return (self.known.get(text) if text else None) or self.new(message)

    def conversation(self, messages: Iterable[JSON]) -> list[WrittenMessage]:
        """The messages of a host's transcript: the same as `written` gives for each."""
        listed, seen = list(messages), self.seen.get
        try:
            return [seen(dumps(message, WITHOUT_REFERENCES)) or self.first_seen(message) for message in listed]
        except ValueError:  # something in them is of no built-in type, or nests too deep
            return [self.written(message) for message in listed]

    def first_seen(self, message: JSON) -> WrittenMessage:
        """A message as it is for the first time; what has to be made plain first is made plain each time."""
        made = self.written(message)
        if text_of(message) == made.text:
            self.seen[dumps(message, WITHOUT_REFERENCES)] = made
        return made

    def new(self, message: object) -> WrittenMessage:
        """The same for a message that was hardly written before."""
        made = plain(message)
        text = dumped(made)
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = WrittenMessage(made, text, self.recorded(text))
        return found

    def recorded(self, text: str) -> Blob:
        """What a record may hold of a message."""
        if self.secrets is None:
            return Blob(text)
        from orchestrator.cleansing import cleansed_json_blob

        return cleansed_json_blob(Blob(text), self.secrets)

    def sendable(self, blobs: tuple[Blob, ...]) -> tuple[Message, ...]:
        """The messages that blobs name as a provider is given them, which it cannot change."""
        ready = self.ready.get
        return tuple([ready(blob.text) or self.made_ready(blob.text) for blob in blobs])

    def made_ready(self, text: str | None) -> Message:
        """A message that is sent for the first time."""
        made: Message = read_only(json.loads(text or "{}"))
        self.ready[text] = made
        return made


def text_of(message: object) -> str | None:
    """The text of a message that is plain data already, cheaply; None where that cannot be said.

    A text that no plain message has (of a lone surrogate, say) is found nowhere, and does no harm.
    """
    try:
        return dumped(message)
    except Exception:  # noqa: BLE001 -- the message may be of anyone's making
        return None

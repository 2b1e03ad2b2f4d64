"""What is shown while the model answers: blocks as they are written, or as they came."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Self

import attrs

from orchestrator.agent.answers import Answer
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.plainjson import clean, written
from orchestrator_events.agent import (
    ContentBlockDelta,
    ContentBlockEnd,
    ContentBlockStart,
    ThinkingDelta,
    ThinkingFinal,
)

if TYPE_CHECKING:
    from orchestrator.redaction import RedactingStream, Secrets

__all__ = ["LiveAnswer"]

Part = tuple[int, str]
"""Index and type of a block: what is told of it is one text."""

SHOWN = (ContentBlockStart, ContentBlockDelta, ContentBlockEnd, ThinkingDelta, ThinkingFinal)


@attrs.define(eq=False)
class LiveAnswer:
    """Tells of one answer, block by block; only from the loop's own thread, and only while its turn lasts.

    A secret that a provider writes in pieces is not shown in pieces: what may become one is held back until that is
    decided, the block goes on in another one, or the answer is there.
    """

    it: Invocation
    turn: int
    is_wanted: bool
    """Whether anybody listens."""
    secrets: Secrets | None
    """What no piece may show; None where nothing is registered."""
    begun: set[int] = attrs.Factory(set[int])
    tries: int = 0
    """Tries of the call that began or are over: what an earlier one tells concerns nobody."""
    streams: dict[Part, RedactingStream] = attrs.Factory(dict["Part", "RedactingStream"])
    """What is held back of each block; empty where no secret is registered."""
    last: Part | None = None
    """The block that the last piece belongs to, where it has a stream."""

    @classmethod
    def of(cls, it: Invocation) -> Self:
        """For the turn that was started."""
        run = it.run
        assert run.started is not None
        secrets = run.secrets if run.secrets is not None and run.secrets.pattern is not None else None
        return cls(it, run.started.turn, any(it.parts.bus.has_receivers(event) for event in SHOWN), secrets)

    def begin_try(self) -> Callable[[int, str, str], None] | None:
        """What the try that begins now tells its pieces with; None where nobody listens."""
        self.tries += 1
        return partial(self.hear, self.tries) if self.is_wanted else None

    def end_try(self, *, is_whole: bool) -> None:
        """The try is over: show what was held back, without any eight characters of a secret where it was cut off."""
        self.tries += 1
        for (index, block_type), stream in self.streams.items():
            self.show(index, block_type, stream.end() if is_whole else stream.cut())
        self.streams.clear()
        self.last = None

    def hear(self, number: int, index: int, block_type: str, piece: str) -> None:
        """A try wrote a piece of a block; whatever is no piece is ignored."""
        run = self.it.run
        is_current = number == self.tries and run.is_in_flight and run.turn == self.turn
        if not is_current or type(index) is not int or index < 0 or not isinstance(piece, str):
            return
        block_type, piece = clean(str(block_type)), clean(piece)
        stream = None if self.secrets is None else self.stream_of((index, block_type), self.secrets)
        if index not in self.begun:
            self.begun.add(index)
            self.it.tell(ContentBlockStart(turn=self.turn, block_index=index, block_type=block_type))
        if stream is None:
            self.tell_piece(index, block_type, piece)
        else:
            self.show(index, block_type, stream.feed(piece))

    def stream_of(self, part: Part, secrets: Secrets) -> RedactingStream:
        """What the pieces of a block go through; the block before is over, as far as anybody can say."""
        if part != self.last:
            if self.last is not None:
                self.show(*self.last, self.streams[self.last].pause())
            self.last = part
            if part not in self.streams:
                from orchestrator.redaction import RedactingStream

                self.streams[part] = RedactingStream(secrets)
        return self.streams[part]

    def show(self, index: int, block_type: str, piece: str) -> None:
        """Tell a piece that can be shown now, if there is any and the call is still in flight."""
        if piece and self.it.run.is_in_flight and self.it.run.turn == self.turn:
            self.tell_piece(index, block_type, piece)

    def tell_piece(self, index: int, block_type: str, piece: str) -> None:
        """Tell a piece of a block."""
        if block_type == "thinking":
            self.it.tell(ThinkingDelta(turn=self.turn, delta=piece))
        self.it.tell(ContentBlockDelta(turn=self.turn, block_index=index, block_type=block_type, delta=piece))

    def tell_whole(self, answer: Answer) -> None:
        """The blocks are whole: tell their ends, and the beginning of those that nobody was told of."""
        if not self.is_wanted:
            return
        total = len(answer.blocks)
        for index, block in enumerate(answer.blocks):
            kind = str(block.get("type", ""))
            if index not in self.begun:
                self.it.tell(ContentBlockStart(turn=self.turn, block_index=index, block_type=kind, total_blocks=total))
            if kind == "thinking":
                self.it.tell(ThinkingFinal(turn=self.turn, text=str(block.get("thinking", ""))))
            self.it.tell(ContentBlockEnd(turn=self.turn, block_index=index, block=written(block), total_blocks=total))

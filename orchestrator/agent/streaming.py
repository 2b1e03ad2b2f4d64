"""What is shown while the model answers: blocks as they are written, or as they came."""

from __future__ import annotations

from typing import Self

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

__all__ = ["LiveAnswer"]

SHOWN = (ContentBlockStart, ContentBlockDelta, ContentBlockEnd, ThinkingDelta, ThinkingFinal)


@attrs.define(eq=False)
class LiveAnswer:
    """Tells of one answer, block by block; only from the loop's own thread, and only while its turn lasts."""

    it: Invocation
    turn: int
    is_wanted: bool
    """Whether anybody listens."""
    begun: set[int] = attrs.Factory(set[int])

    @classmethod
    def of(cls, it: Invocation) -> Self:
        """For the turn that was started."""
        assert it.run.started is not None
        return cls(it, it.run.started.turn, any(it.parts.bus.has_receivers(event) for event in SHOWN))

    def __call__(self, index: int, block_type: str, piece: str) -> None:
        """A piece of a block was written; whatever is no piece is ignored."""
        is_current = self.it.run.is_in_flight and self.it.run.turn == self.turn
        if not is_current or type(index) is not int or index < 0 or not isinstance(piece, str):
            return
        block_type, piece = clean(str(block_type)), clean(piece)
        if index not in self.begun:
            self.begun.add(index)
            self.it.tell(ContentBlockStart(turn=self.turn, block_index=index, block_type=block_type))
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

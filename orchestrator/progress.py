"""Live progress of a call: what its adapter tells is shown at most ten times a second."""

from __future__ import annotations

import attrs

from orchestrator.run import Run
from orchestrator_events.bus import Bus
from orchestrator_events.record import Record
from orchestrator_events.run import GenerationProgressed

__all__ = ["Progress"]

INTERVAL_US = 100_000
"""Shortest time between two live events of one call, microseconds."""


@attrs.define(eq=False)
class Progress:
    """Tells the bus how far a call is; only from the loop's own thread."""

    bus: Bus
    run: Run
    attempt: int
    began_us: int = attrs.field(init=False)
    told_us: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.began_us = self.run.clock.monotonic()
        self.told_us = self.began_us - INTERVAL_US

    def __call__(self, output_tokens: int) -> None:
        """So many output tokens were written, as far as one can tell; whatever is no count is ignored."""
        run, now_us = self.run, self.run.clock.monotonic()
        is_current = run.ready is not None and run.ready.attempt == self.attempt and run.generated is None
        if type(output_tokens) is not int or output_tokens < 0 or not is_current or now_us - self.told_us < INTERVAL_US:
            return
        self.told_us = now_us
        event = GenerationProgressed(
            attempt=self.attempt, output_tokens=output_tokens, elapsed_us=now_us - self.began_us
        )
        self.bus.tell(Record(run.run_id, run.sequence, run.clock.now(), run.lifecycle, run.state, run.state, event))

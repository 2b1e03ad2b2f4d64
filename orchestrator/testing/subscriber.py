"""A subscriber that keeps what it is shown."""

from __future__ import annotations

from typing import TypeVar

import attrs

from orchestrator_events.event import Fact
from orchestrator_events.record import Record

__all__ = ["RecordingSubscriber"]

Event = TypeVar("Event", bound=Fact)


@attrs.define(eq=False)
class RecordingSubscriber:
    """Collects records in the order of delivery: `bus.subscribe(RecordingSubscriber())`.

    >>> from orchestrator import Bus, Orchestrator, MergedSpec
    >>> seen, bus = RecordingSubscriber(), Bus()
    >>> subscription = bus.subscribe(seen)
    >>> generator, evaluator = lambda request: "x = 1", lambda submission: {"works": True}
    >>> engine = Orchestrator(generator=generator, evaluator=evaluator, bus=bus)
    >>> engine.run(MergedSpec(intent="Set x to 1.")).status
    'passed'
    >>> seen.names[0], seen.names[-2:]
    ('execution:start', ('orchestrator:complete', 'execution:end'))
    """

    records: list[Record] = attrs.field(factory=list, init=False)

    def __call__(self, record: Record) -> None:
        """Keep one record."""
        self.records.append(record)

    @property
    def names(self) -> tuple[str, ...]:
        """Wire names of the events, in order."""
        return tuple(record.event.name for record in self.records)

    def events(self, kind: type[Event]) -> tuple[Event, ...]:
        """The events of one class, in order."""
        return tuple(record.event for record in self.records if isinstance(record.event, kind))

    def of_run(self, run_id: str) -> tuple[Record, ...]:
        """The records of one run, in order."""
        return tuple(record for record in self.records if record.run_id == run_id)

"""Plain fakes that the tests of events share: a journal in a list, a hand-moved clock, records made short."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, nullcontext

import attrs
import pytest

from orchestrator_events import (
    Batch,
    Budget,
    Entry,
    Event,
    Gate,
    GenerationRequested,
    Head,
    Journal,
    Ledger,
    Question,
    Record,
)
from orchestrator_events.record import GENESIS

MakeRecord = Callable[..., Record]
Ask = Callable[..., Question]


@attrs.define
class ListJournal:
    """A journal that keeps its batches in a list."""

    batches: list[Batch] = attrs.Factory(list[Batch])

    async def append(self, batch: Batch) -> None:
        """Keep the batch."""
        self.batches.append(batch)

    async def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """The run's records as entries without a chain."""
        for record in self.records(run_id):
            if record.sequence > after:
                yield Entry(record, b"", GENESIS, GENESIS)

    async def head(self, run_id: str) -> Head:
        """How many records the run has."""
        return Head(GENESIS, len(self.records(run_id)))

    def hold(self, run_id: str) -> AbstractContextManager[None]:  # noqa: ARG002 -- the port's signature
        """Nobody else writes here."""
        return nullcontext()

    async def run_ids(self) -> tuple[str, ...]:
        """The runs of the batches kept."""
        return tuple(dict.fromkeys(batch.run_id for batch in self.batches))

    def records(self, run_id: str) -> list[Record]:
        """Every record kept of a run."""
        return [record for batch in self.batches if batch.run_id == run_id for record in batch.records]


@attrs.define
class HandClock:
    """A clock that stands until a test moves it; microseconds."""

    reading: int = 0

    def now(self) -> int:
        """The reading."""
        return self.reading

    def monotonic(self) -> int:
        """The reading."""
        return self.reading


@pytest.fixture
def journal() -> Journal:
    """An empty journal."""
    return ListJournal()


@pytest.fixture
def clock() -> HandClock:
    """A clock at 0."""
    return HandClock()


@pytest.fixture
def ledger(clock: HandClock) -> Ledger:
    """An account with five attempts."""
    return Ledger(Budget(), clock)


@pytest.fixture
def record() -> MakeRecord:
    """Makes a record of an event, of run r1 unless another is named."""

    def make(event: Event, run_id: str = "r1", sequence: int = 1, at: int = 0) -> Record:
        return Record(run_id, sequence, at, "run", "evaluating", "evaluating", event)

    return make


@pytest.fixture
def question(ledger: Ledger) -> Ask:
    """Puts a gate, a generation request unless another is given, on behalf of run r1."""
    request = GenerationRequested(attempt=1, prompt="write", parameters="{}", max_tokens=None, key="k1")

    def make(gate: Gate = request, account: Ledger = ledger) -> Question:
        return Question("r1", "run", "generating", gate, account)

    return make

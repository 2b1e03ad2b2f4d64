"""What every journal promises, run on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.journal import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.codec import encode
from orchestrator_events.errors import JournalConflictError, JournalError
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import GENESIS, Entry, chain_digest

BatchOf = Callable[..., Batch]


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    """Each store in turn."""
    if request.param == "memory":
        yield MemoryJournal()
        return
    with SqliteJournal(tmp_path / "journal.db") as opened:
        yield opened


def test_an_empty_stream(journal: Journal) -> None:
    """An unknown run has no entries, and 64 zeros as its head."""
    assert asyncio.run(everything(journal, "a")) == ([], Head(GENESIS, 0), ())


def test_entries_come_back_as_a_chain(journal: Journal, batch_of: BatchOf) -> None:
    """Read gives every record equal, with its bytes, each linked to the one before; head is the last link."""
    batches = [batch_of("a", 1, "x", "y"), batch_of("a", 5, "é\n\x00𝄞"), batch_of("a", 7, ends=True)]
    append(journal, *batches)
    expected, previous = [], GENESIS
    for record in [record for batch in batches for record in batch.records]:
        body = encode(record)
        expected.append(Entry(record, body, previous, chain_digest(previous, body)))
        previous = expected[-1].digest
    assert asyncio.run(everything(journal, "a")) == (expected, Head(previous, 7), ("a",))


@pytest.mark.parametrize("after", range(8))
def test_read_after(journal: Journal, batch_of: BatchOf, after: int) -> None:
    """`after` skips exactly the entries up to it, within a batch or between two."""
    append(journal, batch_of("a", 1, "x"), batch_of("a", 3, "y", "z"), batch_of("a", 7, ends=True))
    every, _, _ = asyncio.run(everything(journal, "a"))
    assert asyncio.run(entries(journal, "a", after)) == every[after:]


def test_streams_are_apart(journal: Journal, batch_of: BatchOf) -> None:
    """Runs number and chain on their own, and are listed oldest first."""
    append(journal, batch_of("b", 1, "x"), batch_of("a", 1, "x"), batch_of("b", 3, "y"))
    read = [[entry.record.sequence for entry in asyncio.run(entries(journal, run))] for run in ("a", "b")]
    assert (read, asyncio.run(journal.run_ids())) == ([[1, 2], [1, 2, 3, 4]], ("b", "a"))


@pytest.mark.parametrize("first", [1, 2, 4, 9])
def test_a_batch_must_follow_the_last(journal: Journal, batch_of: BatchOf, first: int) -> None:
    """A batch that starts anywhere but after the last record conflicts and writes nothing."""
    append(journal, batch_of("a", 1, "x"))
    before = asyncio.run(everything(journal, "a"))
    with pytest.raises(JournalConflictError) as caught:
        append(journal, batch_of("a", first, "y"))
    after = asyncio.run(everything(journal, "a"))
    assert (after, caught.value.run_id, caught.value.sequence) == (before, "a", first)


def test_a_stream_starts_at_one(journal: Journal, batch_of: BatchOf) -> None:
    """The first batch of a run starts at record 1; one that does not leaves no trace of the run."""
    with pytest.raises(JournalConflictError):
        append(journal, batch_of("a", 2, "x"))
    assert asyncio.run(everything(journal, "a")) == ([], Head(GENESIS, 0), ())


def test_an_older_epoch_is_refused(journal: Journal, batch_of: BatchOf) -> None:
    """A writer whose epoch is older than the run's last one writes nothing; equal and newer ones go on."""
    append(
        journal,
        batch_of("a", 1, "x", epoch=2),
        batch_of("a", 3, "x", epoch=2),
        batch_of("a", 5, "x", epoch=3),
    )
    with pytest.raises(JournalConflictError, match="epoch 2 was replaced by one of epoch 3"):
        append(journal, batch_of("a", 7, "x", epoch=2))
    assert asyncio.run(journal.head("a")).count == 6


def test_malformed_batches_are_refused(journal: Journal, batch_of: BatchOf) -> None:
    """An empty batch, one with a gap and one with a record of another run are refused whole."""
    good = batch_of("a", 1, "x", "y")
    stranger = batch_of("b", 1, "x", "y").records[1]
    bad = [(), (good.records[0], good.records[2]), (good.records[0], stranger)]
    for records in bad:
        with pytest.raises(JournalError):
            append(journal, Batch("a", records))
    assert asyncio.run(everything(journal, "a")) == ([], Head(GENESIS, 0), ())


def test_one_of_two_writers_wins(journal: Journal, batch_of: BatchOf) -> None:
    """Of two batches at the same sequence at once one is stored, and the other conflicts."""

    async def race() -> list[BaseException | None]:
        await journal.append(batch_of("b", 1, "x"))
        return await asyncio.gather(
            *(journal.append(batch_of("a", 1, text)) for text in ("x", "y")), return_exceptions=True
        )

    outcomes = [type(outcome) for outcome in asyncio.run(race())]
    texts = [entry.record.event for entry in asyncio.run(entries(journal, "a"))]
    assert (outcomes, texts) == (
        [type(None), JournalConflictError],
        [record.event for record in batch_of("a", 1, "x").records],
    )


def test_many_runs_at_once(journal: Journal, batch_of: BatchOf) -> None:
    """Runs that append concurrently each keep their own order, over several loops one after another."""

    async def run(name: str) -> None:
        for first in range(1, 12, 2):
            await journal.append(batch_of(name, first, f"{name} {first}"))

    async def runs(names: list[str]) -> None:
        await asyncio.gather(*map(run, names))

    names = [f"run {number}" for number in range(20)]
    asyncio.run(runs(names[:10]))
    asyncio.run(runs(names[10:]))
    assert [asyncio.run(journal.head(name)).count for name in names] == [12] * 20


def append(journal: Journal, *batches: Batch) -> None:
    """Append in order, in a loop of its own."""

    async def each() -> None:
        for batch in batches:
            await journal.append(batch)

    asyncio.run(each())


async def entries(journal: Journal, run_id: str, after: int = 0) -> list[Entry]:
    """All entries of a run."""
    return [entry async for entry in journal.read(run_id, after)]


async def everything(journal: Journal, run_id: str) -> tuple[list[Entry], Head, tuple[str, ...]]:
    """Entries and head of a run, and the journal's runs."""
    return await entries(journal, run_id), await journal.head(run_id), await journal.run_ids()

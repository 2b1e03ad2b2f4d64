"""A reader of a journal that is not as it was written says so, and never gives a wrong entry."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch
from orchestrator_events.record import Entry

BatchOf = Callable[..., Batch]

TEXTS = ("first", "second", "first")
"""The candidates of records 1, 3 and 5; the third is a reference to the first."""

CASES = {
    "UPDATE batch SET bodies = CAST(replace(CAST(bodies AS TEXT), ':5,', ':6,') AS BLOB) WHERE first = 3": (
        "the hash chain breaks in records 3 to 4",
        3,
    ),
    "UPDATE batch SET digest = zeroblob(32) WHERE first = 3": ("the hash chain breaks in records 3 to 4", 3),
    "UPDATE batch SET count = 3 WHERE first = 3": ("the row states 3 records and holds 2", 3),
    "DELETE FROM batch WHERE first = 3": ("the next record in the file is 5", 3),
    "DELETE FROM batch WHERE first = 1": ("the next record in the file is 3", 1),
    "UPDATE batch SET blobs = NULL WHERE first = 3": ("is not stored with it", 3),
    "UPDATE batch SET blobs = NULL WHERE first = 1": ("is not stored with it", 1),
    "UPDATE batch SET blobs = CAST(substr(blobs, 1, 40) AS BLOB) WHERE first = 3": ("end within a header", 3),
    "UPDATE batch SET blobs = CAST(substr(blobs, 1, 47) AS BLOB) WHERE first = 3": ("end within a text", 3),
    "UPDATE batch SET blobs = CAST(substr(blobs, 1, 44) || 'sEcond' AS BLOB) WHERE first = 3": (
        "has another digest",
        3,
    ),
    "UPDATE batch SET blobs = (SELECT blobs FROM batch WHERE first = 1) WHERE first = 3": (
        "is not stored with it",
        3,
    ),
    "UPDATE run SET id = 'b'; INSERT INTO run (id) VALUES ('a'); UPDATE batch SET run = 2 WHERE first = 1": (
        "the next record in the file is 3",
        1,
    ),
    "UPDATE run SET id = 'b'": ("it holds record 1 of run a", 1),
    "UPDATE batch SET first = first + 2 WHERE first = 5": ("the next record in the file is 7", 5),
}


@pytest.fixture
def path(tmp_path: Path, batch_of: BatchOf) -> Path:
    """A journal of one run, closed."""
    path = tmp_path / "journal.db"
    asyncio.run(write(path, [batch_of("a", first, text) for first, text in zip((1, 3, 5), TEXTS, strict=True)]))
    return path


@pytest.mark.parametrize("change", CASES)
def test_every_change_is_found(path: Path, change: str) -> None:
    """Whatever is changed, dropped or moved in a row, the error names file, run, record and what is wrong."""
    execute(path, change)
    expected, sequence = CASES[change]
    run_id = "b" if "id = 'b'" in change else "a"
    with pytest.raises(JournalError, match=expected) as caught:
        asyncio.run(read(path, run_id))
    assert (str(path) in str(caught.value), caught.value.run_id, caught.value.sequence) == (
        True,
        run_id,
        sequence,
    )


def test_a_lost_holder_is_found(path: Path) -> None:
    """A text that was stored with an earlier record is missed where a later one names it."""
    before = asyncio.run(read(path, "a"))
    execute(path, "UPDATE batch SET blobs = NULL WHERE first = 1")
    assert [entry.record.sequence for entry in before] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(JournalError, match="is not in the batch of record 1"):
        asyncio.run(read(path, "a", after=4))


def test_the_first_good_entries_are_given(path: Path) -> None:
    """A reader gets all that precedes the damage."""
    before = asyncio.run(read(path, "a"))
    execute(path, "UPDATE batch SET digest = zeroblob(32) WHERE first = 5")
    found: list[Entry] = []
    with pytest.raises(JournalError, match="record 5: damaged"):
        asyncio.run(read(path, "a", into=found))
    assert found == before[:4]


def test_appending_after_damage_is_refused(path: Path, batch_of: BatchOf) -> None:
    """A run whose blobs cannot be read takes no more records."""
    execute(path, "UPDATE batch SET blobs = x'00' WHERE first = 3")
    with pytest.raises(JournalError, match="record 3: damaged: the blobs end within a header"):
        asyncio.run(write(path, [batch_of("a", 7, "x")]))


@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits_never_make_a_wrong_entry(path: Path, seed: int) -> None:
    """With any byte of the file changed a reader gets entries as they were written, or JournalError."""
    before = asyncio.run(read(path, "a"))
    whole = path.read_bytes()
    random = Random(seed)
    damaged = 0
    for _ in range(40):
        position = random.randrange(len(whole))
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1 << random.randrange(8)]) + whole[position + 1 :])
        found: list[Entry] = []
        try:
            asyncio.run(read(path, "a", into=found))
        except JournalError:
            damaged += 1
        assert found == before[: len(found)]
    assert damaged > 0


def execute(path: Path, statements: str) -> None:
    """Change a journal behind its back."""
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()


async def write(path: Path, batches: list[Batch]) -> None:
    """Append to a journal and close it."""
    with SqliteJournal(path) as journal:
        for batch in batches:
            await journal.append(batch)


async def read(path: Path, run_id: str, after: int = 0, into: list[Entry] | None = None) -> list[Entry]:
    """The entries of a run; those before an error are in `into`."""
    found = [] if into is None else into
    with SqliteJournal(path, read_only=True) as journal:
        async for entry in journal.read(run_id, after):
            found.append(entry)
    return found

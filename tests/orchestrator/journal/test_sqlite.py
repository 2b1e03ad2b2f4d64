"""What the SQLite journal promises beyond every journal: durability, refusals, groups, threads."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from orchestrator.journal import MemoryJournal
from orchestrator.journal.framing import encode_batch
from orchestrator.journal.schema import SCHEMA_VERSION
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.errors import EventError, JournalConflictError, JournalError
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import GENESIS
from orchestrator_events.run import CandidateGenerated

BatchOf = Callable[..., Batch]

WRITER = """
import asyncio, sys
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.journal import Batch
from orchestrator_events.record import Record

async def main(path):
    journal = SqliteJournal(path)
    for sequence in range(1, 100_000):
        event = ExecutionCancelled(reason=str(sequence))
        await journal.append(Batch("a", (Record("a", sequence, 1, "run", "ready", "ready", event),)))
        print(sequence, flush=True)

asyncio.run(main(sys.argv[1]))
"""

OPENER = """
import sys
from orchestrator.journal.sqlite import SqliteJournal
sys.stdin.readline()
SqliteJournal(sys.argv[1]).close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the journal goes; a name that a URI has to escape."""
    return tmp_path / "a journal #1?.db"


def test_a_reopened_journal_goes_on(path: Path, batch_of: BatchOf) -> None:
    """Closing and opening changes nothing: the chain goes on as a store that never closed has it."""
    memory = MemoryJournal()
    batches = [
        batch_of("a", 1, "x"),
        batch_of("a", 3, "x", "y", epoch=1),
        batch_of("a", 7, ends=True, epoch=1),
    ]
    for batch in batches:
        with SqliteJournal(path) as journal:
            append(journal, batch)
        append(memory, batch)
    with SqliteJournal(path) as journal:
        assert state(journal, "a") == state(memory, "a")


def test_the_file_says_what_it_is(path: Path) -> None:
    """Written ahead, synchronously, keys enforced; the file carries our id and the version of its schema."""
    with SqliteJournal(path) as journal:
        names = ("journal_mode", "synchronous", "foreign_keys", "application_id", "user_version")
        values = [journal.table.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
    assert values == ["wal", 2, 1, int.from_bytes(b"OrcJ", "big"), SCHEMA_VERSION]


def test_a_blob_is_stored_once_a_run(path: Path, batch_of: BatchOf) -> None:
    """A text named again, in its batch, later or after reopening, is not stored again, and is read back."""
    big = "candidate " * 1000
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, big, big), batch_of("a", 5, big))
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 7, big), batch_of("a", 9, "small"))
        (stored,) = journal.table.connection.execute("SELECT sum(length(blobs)) FROM batch").fetchone()
        read = [event.candidate.text for event in events(journal, "a") if isinstance(event, CandidateGenerated)]
    assert (read, stored) == ([big, big, big, big, "small"], len(big) + len("small") + 4 * 44)


def test_nothing_is_kept_of_an_ended_run(path: Path, batch_of: BatchOf) -> None:
    """A run costs memory until its invocation ends."""
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"), batch_of("b", 1, "x"))
        opened = set(journal.table.streams)
        append(journal, batch_of("a", 3, ends=True), batch_of("b", 3, ends=True))
        assert (opened, set(journal.table.streams)) == ({"a", "b"}, set())


def test_a_second_writer_wins_and_the_first_finds_out(path: Path, batch_of: BatchOf) -> None:
    """A writer that another one overtook conflicts, whatever it remembers; then it goes on from the store."""
    with SqliteJournal(path) as first, SqliteJournal(path) as second:
        append(first, batch_of("a", 1, "x"))
        append(second, batch_of("a", 3, "y", epoch=1))
        with pytest.raises(JournalConflictError, match="another writer stored record 3 first"):
            append(first, batch_of("a", 3, "z"))
        with pytest.raises(JournalConflictError, match="epoch 0 was replaced by one of epoch 1"):
            append(first, batch_of("a", 5, "z"))
        append(first, batch_of("a", 5, "z", epoch=1))
        assert (state(first, "a"), len(events(first, "a"))) == (state(second, "a"), 6)


def test_a_killed_process_loses_nothing_it_was_told(path: Path) -> None:
    """What `append` returned from is there after a SIGKILL, and the chain is whole."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = 0
        while told < 300:
            told = int(child.stdout.readline())
        child.kill()
        told = int((["", *child.stdout.read().split("\n")[:-1]][-1]) or told)
    with SqliteJournal(path) as journal:
        reasons = [event.reason for event in events(journal, "a") if isinstance(event, ExecutionCancelled)]
    assert (reasons, len(reasons) >= told) == ([str(number) for number in range(1, len(reasons) + 1)], True)


def test_processes_may_create_a_journal_at_once(path: Path) -> None:
    """Of several processes that find no journal one creates it, and all open it."""
    children = [
        subprocess.Popen([sys.executable, "-c", OPENER, str(path)], stdin=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.close()
    assert [child.wait() for child in children] == [0] * 4


def test_a_reader_sees_a_writers_journal(path: Path, batch_of: BatchOf) -> None:
    """A journal opened for reading follows a live one, and refuses to append."""
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        with SqliteJournal(path, read_only=True) as reader:
            append(journal, batch_of("a", 3, "y"))
            assert state(reader, "a") == state(journal, "a")
            with pytest.raises(JournalError, match="opened for reading"):
                append(reader, batch_of("a", 5, "z"))


def test_files_that_are_no_journal_are_refused(tmp_path: Path) -> None:
    """Every file that cannot be a journal is refused with its path and what to do, and left as it was."""
    (tmp_path / "text").write_text("no database, but long enough to be looked at " * 30)
    (tmp_path / "empty").touch()
    foreign(tmp_path / "foreign", "CREATE TABLE notes (text TEXT)")
    with SqliteJournal(tmp_path / "newer") as journal:
        journal.table.connection.execute("PRAGMA user_version = 99")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    cases = {
        ("missing/journal", False): "does not exist: create it first",
        ("text", False): "not a journal: restore the file from a copy or name another",
        ("foreign", False): "the database of another program: name another file",
        ("newer", False): "has schema 99, this release reads 1",
        ("missing", True): "there is no journal: check the path",
        ("empty", True): "there is no journal in it: check the path",
    }
    for (name, read_only), expected in cases.items():
        with pytest.raises(JournalError, match=expected) as caught:
            SqliteJournal(tmp_path / name, read_only=read_only)
        assert str(tmp_path / name) in str(caught.value)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_full_disk_stops_its_run(path: Path, batch_of: BatchOf) -> None:
    """An append that the disk has no room for stores nothing and ends the run's appends until reopening."""
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        before = state(journal, "a")
        journal.table.connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(JournalError, match="the disk is full: free space"):
            append(journal, batch_of("a", 3, "y" * 100_000))
        journal.table.connection.execute("PRAGMA max_page_count = 100000")
        with pytest.raises(JournalError, match="storage failed before: open the journal again"):
            append(journal, batch_of("a", 3, "y"))
        assert state(journal, "a") == before
        append(journal, batch_of("b", 1, "x"))
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 3, "y"))
        assert (asyncio.run(journal.head("a")).count, asyncio.run(journal.head("b")).count) == (4, 2)


def test_a_locked_file_is_waited_for_and_then_reported(path: Path, batch_of: BatchOf) -> None:
    """A lock that outlasts the wait fails the append, which wrote nothing and may be made again."""
    with SqliteJournal(path, lock_wait_s=0.01) as journal:
        append(journal, batch_of("a", 1, "x"))
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for run, first in (("a", 3), ("b", 1)):
            with pytest.raises(JournalError, match="another process holds its lock: wait for it or end it"):
                append(journal, batch_of(run, first, "y"))
        other.execute("COMMIT")
        other.close()
        append(journal, batch_of("a", 3, "y"), batch_of("b", 1, "y"))
        assert (asyncio.run(journal.head("a")).count, asyncio.run(journal.head("b")).count) == (4, 2)


def test_what_cannot_be_stored_is_refused_before_it_is(path: Path, batch_of: BatchOf) -> None:
    """A lone surrogate and a batch above SQLite's limit leave no trace, and the run may go on."""
    with SqliteJournal(path) as journal:
        with pytest.raises(EventError, match="lone surrogate"):
            append(journal, batch_of("a", 1, "\ud800"))
        journal.table.room = 1000
        with pytest.raises(JournalError, match="lower the size limits"):
            append(journal, batch_of("a", 1, "x" * 1000))
        assert state(journal, "a") == ([], Head(GENESIS, 0), ())
        append(journal, batch_of("a", 1, "x"))


def test_a_closed_journal_says_so(path: Path, batch_of: BatchOf) -> None:
    """After `close`, which may be called twice, every use raises JournalError."""
    journal = SqliteJournal(path)
    append(journal, batch_of("a", 1, "x"), batch_of("b", 1, "x"))
    journal.close()
    journal.close()
    uses: list[Callable[[], object]] = [
        lambda: append(journal, batch_of("a", 3, "x")),
        lambda: events(journal, "a"),
        lambda: asyncio.run(journal.head("a")),
        lambda: asyncio.run(journal.run_ids()),
    ]
    for use in uses:
        with pytest.raises(JournalError, match="closed: open it again"):
            use()


def test_a_conflict_does_not_take_its_group_along(path: Path, batch_of: BatchOf) -> None:
    """Of a group the batches that conflict are refused, and all others stored, in one transaction."""
    batches = [
        batch_of("b", 1, "x"),
        batch_of("a", 1, "z"),
        batch_of("c", 2, "x"),
        batch_of("a", 3, "y"),
        Batch("d", ()),
    ]
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        outcomes = append_group(journal, batches)
        counts = [asyncio.run(journal.head(run)).count for run in "abcd"]
    expected = [type(None), JournalConflictError, JournalConflictError, type(None), JournalError]
    assert (outcomes, counts) == (expected, [4, 2, 0, 0])


def test_a_failed_group_stores_nothing(path: Path, batch_of: BatchOf) -> None:
    """When the storage fails for one batch of a group, none is stored, and each caller is told."""
    batches = [batch_of("b", 1, "x"), batch_of("a", 3, "y" * 100_000), batch_of("c", 1, "x")]
    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        journal.table.connection.execute("PRAGMA max_page_count = 6")
        outcomes = append_group(journal, batches)
        counts = [asyncio.run(journal.head(run)).count for run in "abc"]
    assert (outcomes, counts) == ([JournalError] * 3, [2, 0, 0])


def test_a_cancelled_append_is_stored_all_the_same(path: Path, batch_of: BatchOf) -> None:
    """A cancellation that arrives while a batch is in the queue is delivered after it is stored."""
    seen = []

    async def appending(journal: SqliteJournal) -> None:
        await journal.append(batch_of("b", 1, "x"))
        task = asyncio.current_task()
        assert task is not None
        seen.append(task.cancelling())
        await asyncio.Event().wait()

    async def main(journal: SqliteJournal) -> bool:
        with journal.lock:  # the writer thread has to wait
            task = asyncio.create_task(appending(journal))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([task])
        return task.cancelled()

    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        was_cancelled = asyncio.run(main(journal))
        assert (was_cancelled, seen, asyncio.run(journal.head("b")).count) == (True, [1], 2)


def test_a_time_out_during_an_append_stays_a_time_out(path: Path, batch_of: BatchOf) -> None:
    """`asyncio.timeout` around an append that has to wait still ends in TimeoutError, at the next await."""

    async def main(journal: SqliteJournal) -> None:
        async with asyncio.timeout(None) as limit:
            with journal.lock:
                limit.reschedule(asyncio.get_running_loop().time())
                appending = asyncio.create_task(journal.append(batch_of("b", 1, "x")))
                await asyncio.wait([appending], timeout=0)
            await appending

    with SqliteJournal(path) as journal:
        append(journal, batch_of("a", 1, "x"))
        with pytest.raises(TimeoutError):
            asyncio.run(main(journal))


def test_loops_in_several_threads_share_a_journal(path: Path, batch_of: BatchOf) -> None:
    """Runs in loops of different threads, at once, each store all they append."""

    async def run(name: str) -> None:
        for first in range(1, 40, 2):
            await journal.append(batch_of(name, first, f"{name} {first}"))

    async def runs(name: str) -> None:
        await asyncio.gather(*(run(f"{name}{number}") for number in range(3)))

    with SqliteJournal(path) as journal:
        threads = [Thread(target=lambda name=name: asyncio.run(runs(name))) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        counts = {name: asyncio.run(journal.head(name)).count for name in asyncio.run(journal.run_ids())}
    assert counts == {f"{name}{number}": 40 for name in "abcd" for number in range(3)}


def test_sqlite_is_loaded_by_those_who_use_it() -> None:
    """Importing the package of the stores does not load sqlite3."""
    check = "import orchestrator.journal, sys; sys.exit('sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def append(journal: Journal, *batches: Batch) -> None:
    """Append in order, in a loop of its own."""

    async def each() -> None:
        for batch in batches:
            await journal.append(batch)

    asyncio.run(each())


def append_group(journal: SqliteJournal, batches: list[Batch]) -> list[type]:
    """Append as the writer thread does what it finds in its queue: the types of the outcomes."""
    return [type(outcome) for outcome in journal.commit([encode_batch(batch) for batch in batches])]


def state(journal: Journal, run_id: str) -> object:
    """Entries and head of a run, and the journal's runs."""

    async def read() -> object:
        entries = [entry async for entry in journal.read(run_id)]
        return entries, await journal.head(run_id), await journal.run_ids()

    return asyncio.run(read())


def events(journal: Journal, run_id: str) -> list[Event]:
    """The events of a run."""

    async def read() -> list[Event]:
        return [entry.record.event async for entry in journal.read(run_id)]

    return asyncio.run(read())


def foreign(path: Path, statement: str) -> None:
    """A database of another program."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()

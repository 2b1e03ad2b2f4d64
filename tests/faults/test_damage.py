"""Damaged files: what is read is what was written, or an error that names the damage; never anything else.

What a file cannot tell by itself is that its end is missing, be it cut off or overwritten in the write-ahead log,
whose reader stops at the first frame that is not whole. Then a run is shorter by whole batches, which the head in
its result tells, and resume goes on from there as after a power cut.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest

from orchestrator import Budget, MergedSpec, Orchestrator, Request, RunInterruptedError, RunReport, Submission, Verdict
from orchestrator.cli import main
from orchestrator.errors import DocumentError
from orchestrator.export import export_lines
from orchestrator.exports.restoring import import_export
from orchestrator.history import UnknownRunError
from orchestrator.importing import parse_export
from orchestrator.journal import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.resuming import ResumeRefusedError
from orchestrator_events.errors import JournalConflictError, JournalError
from orchestrator_events.record import Entry

ATTEMPTS = 4
SPEC = MergedSpec(name="damage", intent="Count to the number of the attempt.")
RUNS = ("first", "open", "second")
"""Passed, interrupted in its third evaluation, passed."""
DATABASE, LOG = "journal.sqlite", "journal.sqlite-wal"

Harm = Callable[[bytes, Random], bytes]
History = list[Any]


def generate(request: Request) -> str:
    """A candidate, larger for every attempt, so that some lie on pages of their own."""
    return f"candidate {request.attempt} of {request.run_id} " * 40 * request.attempt


def orchestrator(journal: SqliteJournal | MemoryJournal, breaks_at: int = 0) -> Orchestrator:
    """An orchestrator whose last attempt passes, unless the suite breaks before."""

    def evaluate(submission: Submission) -> Verdict:
        if submission.attempt == breaks_at:
            raise OSError("the suite is not there")
        return Verdict.of({"a": True, "b": submission.attempt >= ATTEMPTS or "too early"})

    return Orchestrator(
        generator=generate, evaluator=evaluate, journal=journal, budget=Budget(attempts=ATTEMPTS, seconds=600)
    )


def record_all(journal: SqliteJournal) -> None:
    """The three runs."""
    for run_id in RUNS:
        if run_id == "open":
            with pytest.raises(RunInterruptedError):
                orchestrator(journal, breaks_at=3).run(SPEC, run_id=run_id)
        else:
            orchestrator(journal).run(SPEC, run_id=run_id)


async def stored(journal: SqliteJournal | MemoryJournal, run_id: str, into: list[Entry]) -> list[Entry]:
    """The entries of a run; those before an error are in `into`."""
    async for entry in journal.read(run_id):
        into.append(entry)  # noqa: PERF401 -- what comes before an error counts
    return into


def history(report: RunReport) -> History:
    """What a run came to, attempt by attempt."""
    return report.as_json()["history"]  # type: ignore[no-any-return]


@attrs.frozen
class Pristine:
    """The files of a journal, and what is read from them while they are whole."""

    files: dict[str, bytes]
    entries: dict[str, list[Entry]]
    batches: dict[str, set[int]]
    """How many entries a run has after each of its batches."""
    expected: dict[str, History]
    """What each run comes to."""

    def lay_out(self, directory: Path, name: str = "", content: bytes = b"") -> Path:
        """Write the files, one of them with another content; the journal's path."""
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        for each, whole in self.files.items():
            (directory / each).write_bytes(content if each == name else whole)
        return directory / DATABASE


def taken_from(path: Path) -> Pristine:
    """What there is while the journal is open for writing, so that the log holds batches."""
    with SqliteJournal(path) as journal:
        record_all(journal)
        files = {each.name: each.read_bytes() for each in path.parent.iterdir() if not each.name.endswith("-shm")}
        entries = {run_id: asyncio.run(stored(journal, run_id, [])) for run_id in RUNS}
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT id, first + count - 1 FROM run JOIN batch ON batch.run = run.number").fetchall()
    connection.close()
    batches = {run_id: {0, *(last for each, last in rows if each == run_id)} for run_id in RUNS}
    expected = {run_id: history(orchestrator(MemoryJournal()).run(SPEC, run_id=run_id)) for run_id in RUNS}
    return Pristine(files, entries, batches, expected)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory in memory, where there is one: thousands of files are made, and none has to survive."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def with_log(place: Path) -> Pristine:
    """The journal as a power cut leaves it: most of it is in the log."""
    (place / "log").mkdir()
    pristine = taken_from(place / "log" / DATABASE)
    assert len(pristine.files[LOG]) > 50_000
    return pristine


@pytest.fixture(scope="module")
def closed(with_log: Pristine, place: Path) -> Pristine:
    """The journal closed: all of it is in one file."""
    path = with_log.lay_out(place / "closed")
    SqliteJournal(path).close()
    files = {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()}
    assert LOG not in files
    return attrs.evolve(with_log, files=files)


def flipped(data: bytes, random: Random) -> bytes:
    """One bit changed."""
    position = random.randrange(len(data))
    return data[:position] + bytes([data[position] ^ 1 << random.randrange(8)]) + data[position + 1 :]


def zeroed(data: bytes, random: Random) -> bytes:
    """Some bytes, up to two pages, overwritten by zeros."""
    position, length = random.randrange(len(data)), random.choice([1, 16, 512, 4096, 8192])
    return data[:position] + bytes(len(data[position : position + length])) + data[position + length :]


def torn(data: bytes, random: Random) -> bytes:
    """The end missing."""
    return data[: random.randrange(len(data))]


def zero_tail(data: bytes, random: Random) -> bytes:
    """The end overwritten by zeros."""
    position = random.randrange(len(data))
    return data[:position].ljust(len(data), b"\0")


def garbage(data: bytes, random: Random) -> bytes:
    """A sector of noise."""
    position = random.randrange(0, len(data), 512)
    return data[:position] + random.randbytes(min(512, len(data) - position)) + data[position + 512 :]


HARMS: dict[str, Harm] = {
    "flipped": flipped, "zeroed": zeroed, "torn": torn, "zero tail": zero_tail, "garbage": garbage
}  # fmt: skip


def found_by_reading(pristine: Pristine, path: Path) -> Iterator[tuple[str, str]]:
    """For each run what a reader finds: `equal`, `damage`, or `shorter` by whole batches; anything else fails."""
    for run_id in RUNS:
        whole, found = pristine.entries[run_id], list[Entry]()
        try:
            with SqliteJournal(path, read_only=True) as journal:
                asyncio.run(stored(journal, run_id, found))
        except JournalError as error:
            told = str(error)
            assert str(path) in told
            assert found == whole[: len(found)]
            yield run_id, "damage"
        else:
            assert found == whole[: len(found)]
            assert len(found) in pristine.batches[run_id]
            yield run_id, "equal" if found == whole else "shorter"


def found_by_resuming(pristine: Pristine, path: Path, run_id: str) -> str:
    """What resume makes of a run: its right end, or an error; never another end, never a new beginning."""
    try:
        with SqliteJournal(path) as journal:
            result = orchestrator(journal).resume(run_id)
            after = asyncio.run(stored(journal, run_id, []))
    except (UnknownRunError, ResumeRefusedError):
        return "refused"
    except (JournalError, RunInterruptedError) as error:
        told = str(error)
        assert str(path) in told
        return "refused"
    assert (result.status, history(result)) == ("passed", pristine.expected[run_id])
    kept = [entry.record.event.name for entry in after].index("execution:resumed") - 1
    assert after[:kept] == pristine.entries[run_id][:kept]
    assert kept in pristine.batches[run_id] - {0}
    return "resumed"


def check_commands(path: Path, whole: dict[str, str], readings: dict[str, str], capsys: Any) -> None:
    """`show`, `runs` and `export` end with 1 or 2 and a sentence, or show what they showed before the damage."""
    for command, shown in whole.items():
        code = main([*command.split(), "--runs", str(path)])
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        assert "internal error" not in written.err, written.err
        if code == 0:
            concerned = [run_id for run_id in RUNS if run_id in command.split()] or RUNS
            is_whole = all(readings[run_id] == "equal" for run_id in concerned)
            assert (written.err, written.out == shown or not is_whole) == ("", True)
        else:
            assert code in (1, 2)
            assert shown.startswith(written.out) if "jsonl" in command else not written.out  # lines go out as they come
            assert written.err.startswith("error: ")


def commands(path: Path, capsys: Any) -> dict[str, str]:
    """What the commands that read show while nothing is damaged."""
    shown = {}
    for command in ("runs --json", *(f"show {run_id}" for run_id in RUNS), "export first --format jsonl"):
        capsys.readouterr()
        assert main([*command.split(), "--runs", str(path)]) == 0
        shown[command] = capsys.readouterr().out
    return shown


LONG_ROUNDS = {"flipped": 1_000, "zeroed": 200, "torn": 100, "zero tail": 100, "garbage": 100}
"""How often each harm is done to each file in the long mode; otherwise 15 times, 150 in all."""


CASES = [(name, harm) for name in (DATABASE, LOG) for harm in HARMS]


@pytest.mark.parametrize(("name", "harm"), CASES)
def test_a_damaged_journal(
    name: str, harm: str, closed: Pristine, with_log: Pristine, place: Path, capsys: Any, *, is_long: bool
) -> None:
    """Each reader and resume names the damage or finds what was written; never a crash, never another verdict."""
    pristine = closed if name == DATABASE else with_log
    random, directory, found = Random(f"{name} {harm}"), place / "damaged", Counter[str]()
    whole = commands(pristine.lay_out(directory), capsys)
    for number in range(LONG_ROUNDS[harm] if is_long else 15):
        content = HARMS[harm](pristine.files[name], random)
        path = pristine.lay_out(directory, name, content)
        readings = dict(found_by_reading(pristine, path))
        if is_long or number % 3 == 0:
            check_commands(path, whole, readings, capsys)
        found.update(readings.values())
        for run_id in ("first", "open"):
            pristine.lay_out(directory, name, content)
            found[f"{found_by_resuming(pristine, path, run_id)} {readings[run_id]}"] += 1
    if is_long:
        with capsys.disabled():
            sys.stdout.write(f"\n{name}, {harm}: {dict(sorted(found.items()))}\n")
    assert found["damage"] + found["shorter"] > 0
    assert found["resumed damage"] == 0


def test_a_run_without_an_id(closed: Pristine, place: Path, capsys: Any) -> None:
    """A row of the list of runs that is overwritten by zeros is damage like any other."""
    whole = closed.files[DATABASE]
    at = whole.index(b"second", 4096)  # the rows are stored from the end of their page, the newest first
    path = closed.lay_out(place / "damaged", DATABASE, whole[: at - 4] + bytes(4) + whole[at:])
    assert main(["show", "none", "--runs", str(path)]) in (1, 2)
    assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_export(harm: str, is_long: bool, capsys: Any) -> None:
    """JSON lines are put back byte for byte or refused with the place; that whole lines are missing the head tells."""
    journal, random, found = MemoryJournal(), Random(harm), Counter[str]()
    orchestrator(journal).run(SPEC, run_id="first")
    text = asyncio.run(exported(journal)).encode()
    lines = text.splitlines(keepends=True)
    whole = {b"".join(lines[:count]).rstrip(b"\n") for count in range(1, len(lines) + 1)}
    for _ in range(1_000 if is_long else 60):
        content = HARMS[harm](text, random)
        again = MemoryJournal()
        try:
            asyncio.run(import_export(again, parse_export(content, "export")))
        except (DocumentError, JournalConflictError) as error:
            told = str(error)
            assert told.startswith("export")
            found["refused"] += 1
        else:
            back = asyncio.run(exported(again)).encode()
            assert back.rstrip(b"\n") in whole
            found["equal" if back == text else "shorter"] += 1
    if is_long:
        with capsys.disabled():
            sys.stdout.write(f"\nexport, {harm}: {dict(sorted(found.items()))}\n")
    assert found["refused"] > 0


async def exported(journal: MemoryJournal) -> str:
    """The run as JSON lines."""
    return "".join([line async for line in export_lines(journal, "first")])


def test_no_file_and_an_empty_file(bench: Any) -> None:
    """A journal that is gone, or empty, is no reason to start a run again."""
    assert bench(*bench.run_arguments, "--attempts", "1").code == 3
    path, run_id = bench.directory / "runs" / DATABASE, bench.run_id
    path.write_bytes(b"")
    emptied = bench("resume", run_id, "--attempts", "2")
    path.unlink()
    gone = bench("resume", run_id, "--attempts", "2")
    assert [(ended.code, ended.out) for ended in (emptied, gone)] == [(1, ""), (2, "")]
    assert "the file is empty, there is no journal in it" in emptied.err
    assert "no journal at runs/journal.sqlite" in gone.err
    assert (bench.calls, path.exists(), os.path.exists(f"{path}-wal")) == ([1], False, False)


def test_resume_of_a_damaged_run(bench: Any) -> None:
    """The command says which record is damaged, with status 1, and buys nothing."""
    assert bench(*bench.run_arguments, "--attempts", "1").code == 3
    connection = sqlite3.connect(bench.directory / "runs" / DATABASE)
    connection.execute("UPDATE batch SET bodies = CAST(replace(CAST(bodies AS TEXT), 'failed', 'passed') AS BLOB)")
    connection.commit()
    connection.close()
    ended = bench("resume", "last", "--attempts", "2")
    assert (ended.code, ended.out, bench.calls) == (1, "", [1])
    assert "damaged: the hash chain breaks in records" in ended.err
    assert "restore the file from a copy" in ended.err

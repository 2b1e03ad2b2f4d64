"""Storage that fails: the run stops, buys nothing more, keeps what was stored, and goes on when the cause is gone."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator import Budget, MergedSpec, Orchestrator, Request, RunInterruptedError, RunReport, Submission, Verdict
from orchestrator.history import UnknownRunError
from orchestrator.journal import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import Entry

VICTIM = Path(__file__).with_name("victim.py")
ATTEMPTS = 3
APPENDS = 2 * ATTEMPTS + 1
SPEC = MergedSpec(name="storage", intent="Count to the number of the attempt.")
LARGE = 20_000
"""Size of a candidate in the tests that fill a disk, bytes."""


@attrs.define(eq=False)
class Shop:
    """A generator and an evaluator that count; the last attempt passes."""

    attempts: int = ATTEMPTS
    size: int = 0
    bought: list[str] = attrs.Factory(list[str])
    """Keys of the calls, in order."""

    def generate(self, request: Request) -> str:
        """A candidate."""
        self.bought.append(request.idempotency_key)
        return f"candidate {request.attempt}".ljust(self.size, "x")

    def evaluate(self, submission: Submission) -> Verdict:
        """A verdict."""
        return Verdict.of({"a": True, "b": submission.attempt >= self.attempts or "too early"})

    def orchestrator(self, journal: Journal) -> Orchestrator:
        """An orchestrator that shops here."""
        budget = Budget(attempts=self.attempts, seconds=60)
        return Orchestrator(generator=self.generate, evaluator=self.evaluate, budget=budget, journal=journal)

    def go_on(self, journal: Journal) -> RunReport:
        """Resume the run, or start it where nothing of it was stored."""
        try:
            return self.orchestrator(journal).resume("r")
        except UnknownRunError:
            return self.orchestrator(journal).run(SPEC, run_id="r")


def history(report: RunReport) -> list[Any]:
    """What a run came to, attempt by attempt."""
    return report.as_json()["history"]  # type: ignore[no-any-return]


def undisturbed(shop: Shop) -> list[Any]:
    """What the run comes to that nothing happens to."""
    return history(shop.orchestrator(MemoryJournal()).run(SPEC, run_id="r"))


async def stored(journal: Journal, run_id: str = "r") -> list[Entry]:
    """Everything in the journal; reading checks chain, sequence and blobs."""
    return [entry async for entry in journal.read(run_id)]


@attrs.define(eq=False)
class BreakingJournal:
    """A journal whose n-th append fails, before it stores anything or after it has stored all."""

    kept: Journal
    breaks_at: int
    error: Callable[[], Exception]
    has_stored: bool = False
    stays_broken: bool = True
    asked: list[Batch] = attrs.Factory(list[Batch])
    on_failure: Callable[[], None] = lambda: None

    async def append(self, batch: Batch) -> None:
        """Append, or fail."""
        self.asked.append(batch)
        number = len(self.asked)
        if number == self.breaks_at and self.has_stored:
            await self.kept.append(batch)
        if number == self.breaks_at or (self.stays_broken and number > self.breaks_at):
            self.on_failure()
            raise self.error()
        await self.kept.append(batch)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """As the journal that keeps."""
        return self.kept.hold(run_id)

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """What was stored."""
        return self.kept.read(run_id, after)

    async def head(self, run_id: str) -> Head:
        """What was stored."""
        return await self.kept.head(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """What was stored."""
        return await self.kept.run_ids()


ERRORS: dict[str, Callable[[], Exception]] = {
    "JournalError": lambda: JournalError("storage failed: check the disk", run_id="r"),
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "unexpected": lambda: ZeroDivisionError("a bug in a host's journal"),
}


@pytest.mark.parametrize("has_stored", [False, True])
@pytest.mark.parametrize("stays_broken", [False, True])
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("append", range(1, APPENDS + 1))
def test_an_append_that_fails(append: int, error: str, *, stays_broken: bool, has_stored: bool) -> None:
    """No call after it, no batch offered twice, a journal intact; resume gives the history of an undisturbed run."""
    shop = Shop()
    expected = undisturbed(shop)
    shop.bought.clear()
    bought_before: list[int] = []
    broken = BreakingJournal(
        MemoryJournal(), append, ERRORS[error], has_stored=has_stored, stays_broken=stays_broken,
        on_failure=lambda: bought_before.append(len(shop.bought)),
    )  # fmt: skip
    with pytest.raises(RunInterruptedError) as caught:
        shop.orchestrator(broken).run(SPEC, run_id="r")
    assert isinstance(caught.value.__cause__, JournalError)
    assert len(shop.bought) == bought_before[0]
    offered = [batch.records[0].sequence for batch in broken.asked]
    assert offered == sorted(set(offered))
    assert len(offered) - append <= 1  # the end of the invocation may be offered, once
    before = asyncio.run(stored(broken.kept))
    if before and before[-1].record.target == "passed":
        return  # the batch with the verdict was stored: nothing is left to do
    result = shop.go_on(broken.kept)
    assert (result.status, history(result)) == ("passed", expected)
    assert asyncio.run(stored(broken.kept))[: len(before)] == before
    in_flight = has_stored is False and append % 2 == 0  # the answer was there, and could not be stored
    assert len(shop.bought) <= ATTEMPTS + in_flight
    assert set(shop.bought) == {f"r:{number}" for number in range(1, ATTEMPTS + 1)}


def test_a_journal_of_one_file_after_a_failure(tmp_path: Path) -> None:
    """The same with the SQLite journal, opened again between failure and resume."""
    shop = Shop()
    expected = undisturbed(shop)
    for append in range(1, APPENDS + 1):
        shop.bought.clear()
        path = tmp_path / f"{append}.sqlite"
        with SqliteJournal(path) as journal, pytest.raises(RunInterruptedError):
            shop.orchestrator(BreakingJournal(journal, append, ERRORS["EIO"])).run(SPEC, run_id="r")
        with SqliteJournal(path) as journal:
            before = asyncio.run(stored(journal))
            result = shop.go_on(journal)
            after = asyncio.run(stored(journal))
        assert (result.status, history(result), after[: len(before)]) == ("passed", expected, before)
        assert len(shop.bought) <= ATTEMPTS + 1


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KB, where the test may make one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = mount("-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place))
    if mounted:
        pytest.skip(f"no small disk can be mounted here: {mounted}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def mount(*arguments: str) -> str:
    """Mount; what is wrong, or nothing."""
    try:
        ended = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return (ended.stderr.strip() or "mount failed") if ended.returncode else ""


def test_a_full_disk(disk: Path) -> None:
    """The run stops as the disk fills, and goes on when there is room: one call is bought again, no other."""
    shop = Shop(attempts=30, size=LARGE)
    expected = undisturbed(shop)
    shop.bought.clear()
    with SqliteJournal(disk / "journal.sqlite") as journal, pytest.raises(RunInterruptedError) as caught:
        shop.orchestrator(journal).run(SPEC, run_id="r")
    assert isinstance(caught.value.__cause__, JournalError)
    assert "storage failed, the disk is full: free space" in str(caught.value)
    bought = list(shop.bought)
    assert bought == [f"r:{number}" for number in range(1, len(bought) + 1)]
    assert 0 < len(bought) < 30
    assert not mount("-o", "remount,size=8m", str(disk))
    with SqliteJournal(disk / "journal.sqlite") as journal:
        before = asyncio.run(stored(journal))
        result = shop.orchestrator(journal).resume("r")
        after = asyncio.run(stored(journal))
    assert (result.status, history(result), after[: len(before)]) == ("passed", expected, before)
    assert sorted(set(shop.bought)) == sorted(f"r:{number}" for number in range(1, 31))
    assert len(shop.bought) - 30 <= 1


@pytest.mark.parametrize("free_kb", range(0, 140, 20))
def test_a_disk_that_is_almost_full(disk: Path, free_kb: int) -> None:
    """However little room there is, a run is stored or refused in the journal's words; with room it is finished."""
    shop = Shop(size=2_000)
    expected = undisturbed(shop)
    shop.bought.clear()
    fill(disk, free_kb)
    try:
        with SqliteJournal(disk / "journal.sqlite") as journal:
            shop.orchestrator(journal).run(SPEC, run_id="r")
    except (JournalError, RunInterruptedError) as error:
        has_begun, told = isinstance(error, RunInterruptedError), str(error)
    else:
        return
    assert f"{disk}/journal.sqlite: storage failed" in told
    assert has_begun or not shop.bought
    bought = len(shop.bought)
    (disk / "filling").unlink()
    with SqliteJournal(disk / "journal.sqlite") as journal:
        result = shop.go_on(journal)
    assert (result.status, history(result)) == ("passed", expected)
    assert len(shop.bought) <= ATTEMPTS + min(1, bought)


def fill(disk: Path, free_kb: int) -> None:
    """Leave so much room on a disk."""
    room = os.statvfs(disk)
    (disk / "filling").write_bytes(b"." * (room.f_bavail * room.f_frsize - free_kb * 1024))


ROOM_KB = (8, 60, 84, 112)
"""Room that ends as the journal is made, as the run begins, within it, and after its first verdict."""


@pytest.mark.parametrize("free_kb", ROOM_KB)
def test_the_command_on_a_full_disk(bench: Any, disk: Path, free_kb: int) -> None:
    """Status 1 and no traceback; with room again, what was begun is finished, and what was not is not there."""
    fill(disk, free_kb)
    ended = bench(*bench.run_arguments, "--runs", str(disk))
    assert (ended.code, ended.out) == (1, "")
    (disk / "filling").unlink()
    resumed = bench("resume", "last", "--runs", str(disk))
    if free_kb < ROOM_KB[2]:
        assert resumed.code in (1, 2)
        assert "the file is empty, there is no journal in it" in resumed.err or "no run 'last'" in resumed.err
        return
    assert resumed.code == 0
    assert resumed.out.startswith("conforms after 2 attempts")
    assert sorted(set(bench.calls)) == [1, 2]
    assert len(bench.calls) <= 3


@pytest.mark.parametrize("free_kb", ROOM_KB[2:])
def test_what_the_command_says_of_a_full_disk(bench: Any, disk: Path, free_kb: int) -> None:
    """It names the journal, the remedy, and the command to go on with."""
    fill(disk, free_kb)
    ended = bench(*bench.run_arguments, "--runs", str(disk))
    assert f"{disk}/journal.sqlite: storage failed, the disk is full: free space" in ended.err
    assert "go on with it, when that is mended, under the same configuration: orchestrator resume " in ended.err


def test_a_read_only_disk(bench: Any, disk: Path) -> None:
    """Nothing is bought where nothing can be stored; writable again, the run goes on."""
    runs = ("--runs", str(disk))
    assert bench(*bench.run_arguments, *runs, "--attempts", "1").code == 3
    bought = list(bench.calls)
    assert not mount("-o", "remount,ro", str(disk))
    for command in ((*bench.run_arguments, *runs), ("resume", "last", *runs, "--attempts", "2")):
        ended = bench(*command)
        assert (ended.code, ended.out) == (2, "")
        assert f"{disk}: nothing can be written there" in ended.err
    assert bench.calls == bought
    assert not mount("-o", "remount,rw", str(disk))
    assert bench("resume", "last", *runs, "--attempts", "2").code == 0
    assert bench.calls == [1, 2]


LIMITED = """
import resource, runpy, sys
name, value = sys.argv[1], int(sys.argv[2])
resource.setrlimit(getattr(resource, name), (value, resource.getrlimit(getattr(resource, name))[1]))
sys.argv = sys.argv[3:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def victim(directory: Path, environment: dict[str, str], action: str, *limit: str) -> tuple[int, dict[str, Any], str]:
    """Run the victim to its end, under a limit if there is one; its status, and what it wrote."""
    within = ["-c", LIMITED, *limit] if limit else []
    command = [sys.executable, *within, str(VICTIM), str(directory), action, "nowhere"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return ended.returncode, json.loads(ended.stdout) if ended.stdout else {}, ended.stderr


def calls(directory: Path) -> list[str]:
    """The keys of the victim's calls."""
    path = directory / "calls"
    return path.read_text().split() if path.exists() else []


def finished_without_limit(directory: Path, environment: dict[str, str]) -> tuple[Any, ...]:
    """Go on without the limit: status, number of attempts judged, and how many calls were bought more than once."""
    code, told, error = victim(directory, environment, "resume")
    if "UnknownRunError" in error:
        code, told, error = victim(directory, environment, "run")
    assert error == ""
    bought = calls(directory)
    assert sorted(set(bought)) == [f"victim:{number}" for number in range(1, ATTEMPTS + 1)]
    assert len(bought) - ATTEMPTS <= 1
    return code, told["status"], [attempt for attempt, *_ in told["history"]]


FINISHED = (0, "passed", [1, 2, 3])


@pytest.mark.parametrize("kilobytes", [0, 20, 31, 60, 72, 84])
def test_a_limit_of_file_size(tmp_path: Path, environment: dict[str, str], kilobytes: int) -> None:
    """RLIMIT_FSIZE stops the run in the journal's words wherever it strikes; without it the run is finished."""
    code, told, error = victim(tmp_path, environment, "run", "RLIMIT_FSIZE", str(kilobytes * 1024))
    if code == 0:
        assert told["status"] == "passed"
        return
    last = error.splitlines()[-1]
    assert (code, "JournalError" in last or "RunInterruptedError" in last, "journal.sqlite" in last) == (1, True, True)
    assert finished_without_limit(tmp_path, environment) == FINISHED


@pytest.mark.parametrize("files", [4, 6, 8, 9, 10])
def test_a_limit_of_open_files(tmp_path: Path, environment: dict[str, str], files: int) -> None:
    """RLIMIT_NOFILE at any number: what cannot be opened ends the run before its first call; later it is finished."""
    code, _, error = victim(tmp_path, environment, "run", "RLIMIT_NOFILE", str(files))
    assert code in (0, 1)
    if code:
        assert "Too many open files" in error or "journal.sqlite: cannot be opened" in error
        assert calls(tmp_path) == []
        assert finished_without_limit(tmp_path, environment) == FINISHED


def test_a_loop_that_cannot_be_made(tmp_path: Path, environment: dict[str, str]) -> None:
    """The one error is that too many files are open; no warning comes with it."""
    told = victim(tmp_path, environment, "run", "RLIMIT_NOFILE", "8")[2]
    assert ("Too many open files" in told, "never awaited" in told) == (True, False)

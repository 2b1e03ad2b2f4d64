"""Any crashes at any commits, and any failing subscribers: the run ends with the verdicts it would have had."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import Budget, Exhausted, MergedSpec, Orchestrator, Request, RunReport, Submission, Verdict
from orchestrator.history import load_run, report_of
from orchestrator.journal import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.codec import encode
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import GENESIS, Entry, Record, chain_digest

SPEC = MergedSpec(name="crash", intent="Whatever the script says.")
LIMITS = Budget(attempts=6, repeats=2)


@attrs.frozen
class Step:
    """What an attempt comes to: its candidate, or none, and whether each of its cases passes."""

    candidate: str | None
    passes: tuple[bool, bool]


STEPS = st.builds(Step, st.sampled_from([None, "x", "y", "z", "ü\n"]), st.tuples(st.booleans(), st.booleans()))
SCRIPTS = st.lists(STEPS, min_size=1, max_size=6)
CUTS = st.lists(st.integers(min_value=1, max_value=14), max_size=4)
FAILURES = st.frozensets(st.integers(min_value=1, max_value=60), max_size=8)


class PowerCut:
    """A journal that keeps only what its first appends brought, while its writer goes on and notices nothing."""

    def __init__(self, kept: Journal, lasts: int) -> None:
        self.kept = kept
        self.lasts = lasts
        self.unkept: Journal = MemoryJournal()
        self.appends = 0

    @classmethod
    async def after(cls, kept: Journal, lasts: int) -> PowerCut:
        """A journal that goes on from what is kept, in two copies from now on."""
        cut = cls(kept, lasts)
        records = tuple([entry.record async for entry in kept.read("r")])
        if records:
            await cut.unkept.append(Batch("r", records))
        return cut

    async def append(self, batch: Batch) -> None:
        """Keep the batch, if there is still power."""
        self.appends += 1
        await self.unkept.append(batch)
        if self.appends <= self.lasts:
            await self.kept.append(batch)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """As what is kept."""
        return self.kept.hold(run_id)

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """What the writer believes."""
        return self.unkept.read(run_id, after)

    async def head(self, run_id: str) -> Head:
        """What the writer believes."""
        return await self.unkept.head(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """What the writer believes."""
        return await self.unkept.run_ids()


@attrs.define(eq=False)
class Failing:
    """A subscriber that raises at some of the records it is shown."""

    at: frozenset[int]
    shown: int = 0

    def __call__(self, _: Record) -> None:
        """Fail, or do nothing."""
        self.shown += 1
        if self.shown in self.at:
            raise RuntimeError(f"record {self.shown} is too much")


def invoke(script: list[Step], journal: Journal, failures: frozenset[int]) -> RunReport:
    """Begin the run, or go on with it, in a process of its own as far as the engine can tell."""

    def generate(request: Request) -> str:
        candidate = script[(request.attempt - 1) % len(script)].candidate
        if candidate is None:
            raise OSError("no answer")
        return candidate

    def evaluate(submission: Submission) -> Verdict:
        # By candidate and not by attempt, as a suite does: equal candidates have equal verdicts.
        step = next(step for step in script if step.candidate == submission.candidate.text)
        return Verdict.of(dict(zip(("a", "b"), step.passes, strict=True)))

    orchestrator = Orchestrator(generator=generate, evaluator=evaluate, budget=LIMITS, journal=journal)
    orchestrator.bus.subscribe(Failing(failures), name="failing")
    if asyncio.run(stored(journal)):
        return orchestrator.resume("r")
    return orchestrator.run(SPEC, run_id="r")


async def stored(journal: Journal) -> list[Entry]:
    """Everything in the journal."""
    return [entry async for entry in journal.read("r")]


def crashed_and_resumed(
    script: list[Step], cuts: list[int], failures: frozenset[int], journal: Journal
) -> tuple[RunReport, int]:
    """The run, cut off after so many appends of each invocation; its report, and the number of invocations kept."""
    invocations = 0
    for lasts in cuts:
        asyncio.run(asyncio.sleep(0))
        invoke(script, asyncio.run(PowerCut.after(journal, lasts)), failures)
        kept = asyncio.run(stored(journal))
        invocations += 1
        if kept[-1].record.event.name == "execution:end":
            return report_of(asyncio.run(load_run(journal, "r"))), invocations
    return invoke(script, journal, failures), invocations + 1


def history(report: RunReport) -> tuple[Any, ...]:
    """Status, limit and every verdict: all of a result that does not count time, tokens or calls."""
    told = report.as_json()
    limit = (report.limit, report.detail) if isinstance(report, Exhausted) else ()
    attempts = [{name: value for name, value in each.items() if name != "charge"} for each in told["history"]]
    return (told["status"], limit, told["attempts"], attempts, told["errors"])


def check_chain(entries: list[Entry]) -> None:
    """Every digest follows from the bytes and the entry before, sequence without a gap, states joined."""
    previous, state = GENESIS, entries[0].record.source
    for position, entry in enumerate(entries, 1):
        expected = Entry(entry.record, encode(entry.record), previous, chain_digest(previous, entry.body))
        assert (entry, entry.record.sequence, entry.record.source) == (expected, position, state)
        previous, state = entry.digest, entry.record.target


def markers(entries: list[Entry]) -> list[list[str]]:
    """The names of the markers, an invocation a list."""
    found: list[list[str]] = []
    for entry in entries:
        name = entry.record.event.name
        if name == "execution:start":
            found.append([])
        if name.startswith("execution:") or name == "orchestrator:complete":
            found[-1].append(name)
    return found


def check_markers(entries: list[Entry], invocations: int) -> None:
    """One bracket an invocation, numbered in order, those that were cut off closed by the next one."""
    ended = ["orchestrator:complete", "execution:end"]
    resumed = ["execution:start", "execution:resumed", "execution:interrupted"]
    expected = [resumed if number else ["execution:start"] for number in range(invocations)]
    expected[-1] = [*expected[-1], *ended]
    assert markers(entries) == expected
    starts = [entry.record.event for entry in entries if entry.record.event.name == "execution:start"]
    assert [start.invocation for start in starts] == list(range(1, invocations + 1))  # type: ignore[attr-defined]
    noted = [entry for entry in entries if entry.record.event.name == "subscriber:failed"]
    assert len(noted) <= 1


@given(script=SCRIPTS, cuts=CUTS, failures=FAILURES)
@settings(deadline=None)
def test_any_crashes_and_failing_subscribers(script: list[Step], cuts: list[int], failures: frozenset[int]) -> None:
    """Verdicts, limits and errors are those of the undisturbed run; chain and markers are in order."""
    undisturbed = invoke(script, MemoryJournal(), frozenset())
    journal = MemoryJournal()
    report, invocations = crashed_and_resumed(script, cuts, failures, journal)
    assert history(report) == history(undisturbed)
    entries = asyncio.run(stored(journal))
    check_chain(entries)
    check_markers(entries, invocations)
    folded = report_of(asyncio.run(load_run(journal, "r")))
    assert (history(folded), folded.journal_head) == (history(report), report.journal_head)


@given(script=SCRIPTS, cuts=CUTS, failures=FAILURES)
@settings(deadline=None, max_examples=25)
def test_any_crashes_with_a_file(script: list[Step], cuts: list[int], failures: frozenset[int]) -> None:
    """The same with the SQLite journal: what it stores is, byte for byte but for the times, what memory keeps."""
    with TemporaryDirectory() as directory, SqliteJournal(Path(directory) / "journal.sqlite") as journal:
        report, invocations = crashed_and_resumed(script, cuts, failures, journal)
        entries = asyncio.run(stored(journal))
    in_memory = MemoryJournal()
    expected, _ = crashed_and_resumed(script, cuts, failures, in_memory)
    assert history(report) == history(expected)
    names: Callable[[list[Entry]], list[str]] = lambda found: [entry.record.event.name for entry in found]  # noqa: E731
    assert names(entries) == names(asyncio.run(stored(in_memory)))
    check_chain(entries)
    check_markers(entries, invocations)


@pytest.mark.parametrize("lasts", range(1, 14))
def test_every_crash_of_one_run(lasts: int) -> None:
    """One run with failures, a repeat and a pass, cut off after each of its appends and after each of the next ones."""
    script = [Step("x", (False, True)), Step(None, (False, False)), Step("x", (False, True)), Step("y", (True, True))]
    undisturbed = history(invoke(script, MemoryJournal(), frozenset()))
    for again in range(1, 14):
        journal = MemoryJournal()
        report, invocations = crashed_and_resumed(script, [lasts, again], frozenset(), journal)
        assert history(report) == undisturbed
        check_markers(asyncio.run(stored(journal)), invocations)

"""Progress as lines: one for each thing that matters, and a sign of life while waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import attrs
from rich.console import Console
from rich.text import Text

from orchestrator.attempt import Attempt
from orchestrator.cli.appearance import Marks
from orchestrator.cli.attemptlines import attempt_line, header
from orchestrator.cli.inert import one_line
from orchestrator.cli.isolationlines import isolation_lines
from orchestrator.cli.wording import count_of, duration
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionStart, IsolationEstablished, SecretFound, SubscriberFailed
from orchestrator_events.record import Record
from orchestrator_events.run import (
    AttemptFailed,
    AttemptPassed,
    BudgetOverrun,
    CandidateGenerated,
    CasesPinned,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationRetried,
    GenerationStarted,
)

__all__ = ["EFFECTS", "HEARTBEAT_S", "PlainScreen", "lines_of", "pinned_words"]

EFFECTS: Final = (GenerationStarted, CandidateGenerated, EvaluationStarted)
"""Records after which something is waited for."""
HEARTBEAT_S: Final = 30.0
"""Silence after which a line says that the run is alive, seconds: shorter than any CI's patience."""
REASON: Final = 200


@attrs.define(eq=False)
class PlainScreen:
    """Writes lines, never goes back, and moves no cursor."""

    console: Console
    marks: Marks
    heartbeat_s: float = HEARTBEAT_S
    run: Run | None = None
    since: int = 0
    """Monotonic reading when the effect under way began, microseconds."""
    timer: asyncio.TimerHandle | None = None

    def open(self, run: Run) -> None:
        """Begin to watch."""
        self.run = run
        self.beat_later()

    def show(self, record: Record) -> None:
        """Write what this record has to say."""
        if self.run is None:
            return
        if isinstance(record.event, EFFECTS):
            self.since = self.run.clock.monotonic()
        for line in lines_of(self.run, record, self.marks):
            self.console.print(line)
            self.beat_later()

    def close(self) -> None:
        """Stop the heartbeat."""
        if self.timer is not None:
            self.timer.cancel()
        self.run = None

    def beat_later(self) -> None:
        """Start to wait anew: what was just written is a sign of life itself."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(self.heartbeat_s, self.beat)

    def beat(self) -> None:
        """Say that the run is alive, and what it waits for."""
        if self.run is not None:
            waited = duration(self.run.clock.monotonic() - self.since)
            number = self.run.ready.attempt if self.run.ready is not None else 1
            self.console.print(Text(f"#{number:<2}  still {self.run.state}, {waited}", "dim"))
            self.beat_later()


def lines_of(run: Run, record: Record, marks: Marks) -> Iterator[Text]:
    """What a record has to say, once it is folded into the run; most say nothing."""
    match record.event:
        case ExecutionStart() as event:
            yield header(run, event, marks)
        case IsolationEstablished() as event:
            yield from isolation_lines(event, marks)
        case CasesPinned() as event:
            yield Text(f"pinned  {pinned_words(event)}", "dim")
        case AttemptFailed() | AttemptPassed():
            yield attempt_line(run, run.attempts[-1], marks)
            yield from remedy_lines(run.attempts[-1], marks)
        case BudgetOverrun() as event:
            yield Text(f"#{event.attempt:<2}  used more than was reserved: {', '.join(event.limits)}", "yellow")
        case GenerationRetried() as event:
            why = one_line(event.reason, REASON, marks.ellipsis)
            yield Text(f"#{event.attempt:<2}  retry {event.retry} in {duration(event.wait_us)}: {why}", "yellow")
        case SecretFound() as event:
            found = f"secret {event.secret} found in {event.place}" + (", refused" if event.is_refused else "")
            yield Text(one_line(found, REASON, marks.ellipsis), "red")
        case GenerationAbandoned() as event:
            yield Text(f"#{event.attempt:<2}  call abandoned: {one_line(event.reason, REASON, marks.ellipsis)}")
        case SubscriberFailed() as event:
            failed = f"subscriber {event.subscriber} failed at {event.event}: {event.error}"
            yield Text(one_line(failed, REASON, marks.ellipsis), "yellow")
        case _:
            return


def remedy_lines(attempt: Attempt, marks: Marks) -> Iterator[Text]:
    """What the host could change so that a candidate comes, whole: no prompt says it."""
    if attempt.remedy:
        yield Text(f"     {one_line(attempt.remedy, 4 * REASON, marks.ellipsis)}", "yellow")


def pinned_words(event: CasesPinned) -> str:
    """How many cases must pass, and how many must fail."""
    passing = f"exactly {count_of(len(event.cases), 'case')} must pass" if event.cases else ""
    failing = f"{count_of(len(event.controls), 'control')} must fail" if event.controls else ""
    return ", ".join(filter(None, (passing, failing)))

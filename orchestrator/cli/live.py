"""Progress redrawn in place: the state, the limits, the last attempts case by case, the last decisions."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Iterator
from typing import Final

import attrs
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.appearance import ASCII, Marks
from orchestrator.cli.attemptlines import headline, passed_of
from orchestrator.cli.casestrip import case_order, case_strip, group_size
from orchestrator.cli.gauges import gauge_line, gauges
from orchestrator.cli.inert import one_line
from orchestrator.cli.plain import EFFECTS, lines_of
from orchestrator.cli.recordscreens import drawn_below
from orchestrator.cli.wording import count_of, duration, limit_name
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionStart, IsolationEstablished
from orchestrator_events.record import Record
from orchestrator_events.run import (
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    GenerationProgressed,
    PromptRefined,
)
from orchestrator_states.run import RunState

__all__ = ["LiveScreen"]

REFRESH_S: Final = 0.2
SHOWN_ATTEMPTS: Final = 5
SHOWN_DECISIONS: Final = 3
REASON: Final = 160
WHOLE: Final = (ExecutionStart, IsolationEstablished)
"""Records whose lines are never cut: which limits hold, and what nothing holds back, have to be known."""
WORKING: Final = {
    RunState.READY: "starting",
    RunState.PROMPTING: "writing the prompt of",
    RunState.GENERATING: "generating",
    RunState.EVALUATING: "evaluating",
    RunState.REFINING: "refining after",
}


@attrs.define(eq=False)
class LiveScreen:
    """Draws about a dozen lines at the bottom of a terminal; finished attempts scroll away above them."""

    console: Console
    marks: Marks
    run: Run | None = None
    since: int = 0
    """Monotonic reading when the effect under way began, microseconds."""
    closest: int = 0
    written: int = 0
    """Output tokens so far of the call under way, estimated; 0 where nobody tells."""
    decisions: deque[str] = attrs.field(factory=lambda: deque[str](maxlen=SHOWN_DECISIONS))
    live: Live | None = None
    timer: asyncio.TimerHandle | None = None

    def open(self, run: Run) -> None:
        """Begin to draw."""
        self.run = run
        self.since = run.clock.monotonic()
        self.live = drawn_below(self.console, self.frame)
        self.redraw()

    def show(self, record: Record) -> None:
        """Take in a record; what it has to say for good scrolls away above the drawing."""
        if self.run is None or self.live is None:
            return
        for line in lines_of(self.run, record, self.marks):
            self.console.print(line if isinstance(record.event, WHOLE) else self.cut(line))
        self.decisions.extend(self.reasons(self.run, record))
        if isinstance(record.event, EFFECTS):
            self.since, self.written = self.run.clock.monotonic(), 0
            self.live.refresh()

    def progress(self, record: Record) -> None:
        """A call in flight writes; the next drawing shows how much."""
        if isinstance(record.event, GenerationProgressed):
            self.written = record.event.output_tokens

    def close(self) -> None:
        """Take the drawing away and give the cursor back."""
        if self.timer is not None:
            self.timer.cancel()
        if self.live is not None:
            self.live.stop()
        self.run = None

    def redraw(self) -> None:
        """Draw, and again a little later."""
        if self.live is not None and self.run is not None:
            self.live.refresh()
            self.timer = asyncio.get_running_loop().call_later(REFRESH_S, self.redraw)

    def frame(self) -> Group:
        """All lines, from top to bottom."""
        return Group(*([] if self.run is None else map(self.cut, self.lines(self.run))))

    def cut(self, line: Text) -> Text:
        """The line without what does not fit; a line that wraps would upset the drawing."""
        line.truncate(self.console.width - 1, overflow="crop" if self.marks is ASCII else "ellipsis")
        return line

    def lines(self, run: Run) -> Iterator[Text]:
        """The drawing, line by line."""
        yield Text()
        yield self.title(run)
        yield from (gauge_line(gauge, self.marks) for gauge in gauges(run))
        yield from self.strips(run)
        for decision in self.decisions:
            yield Text(f"  {self.marks.bullet} {decision}", "dim")

    def title(self, run: Run) -> Text:
        """What is going on, and for how long."""
        doing = WORKING.get(RunState(run.state), run.state)
        number = "" if run.ready is None else f" #{run.ready.attempt}"
        waited = duration(run.clock.monotonic() - self.since)
        line = Text(f"{one_line(run.spec.name, 40, self.marks.ellipsis)}  ", "bold")
        line.append(f"{doing}{number}  {waited}", "cyan")
        if self.written:
            line.append(f"  ~{count_of(self.written, 'token')}", "cyan")
        return line.append(f"   total {duration(run.ledger.elapsed_us())}", "dim")

    def strips(self, run: Run) -> Iterator[Text]:
        """The last attempts, one mark a case."""
        order = case_order((case.name for case in run.spec.evals), run.attempts)
        for attempt in run.attempts[-SHOWN_ATTEMPTS:]:
            line = Text(f"  #{attempt.number:<3} ")
            line.append(case_strip(order, attempt, self.marks) if passed_of(attempt) else Text("no candidate", "red"))
            line.append(f"  {passed_of(attempt)}".rstrip())
            if attempt is run.closest:
                line.append("  closest", "bold")
            yield line
        if run.attempts and group_size(len(order)) > 1:
            yield Text(f"       a mark is the worst of {group_size(len(order))} cases", "dim")

    def reasons(self, run: Run, record: Record) -> Iterator[str]:
        """What was decided, and why."""
        match record.event:
            case AttemptFailed() | AttemptPassed():
                yield from self.judged(run)
            case PromptRefined() as event:
                yield refinement(event, run)
            case BudgetExhausted() as event:
                yield one_line(f"limit reached: {limit_name(event.limit)}: {event.detail}", REASON, self.marks.ellipsis)
            case _:
                return

    def judged(self, run: Run) -> Iterator[str]:
        """What an attempt that was just judged changes."""
        last, closest = run.attempts[-1], run.closest
        if last.error:
            yield one_line(f"#{last.number} gave no candidate: {headline(last.error)}", REASON, self.marks.ellipsis)
            if last.remedy:
                yield one_line(last.remedy, 4 * REASON, self.marks.ellipsis)
        elif isinstance(last.outcome, AttemptFailed) and last.outcome.reused_from:
            yield f"#{last.number} is identical to #{last.outcome.reused_from}, whose verdict is reused"
        if closest is not None and closest.number != self.closest:
            self.closest = closest.number
            yield f"#{closest.number} is the closest so far: {passed_of(closest)} cases pass"


def refinement(event: PromptRefined, run: Run) -> str:
    """What the strategy changes."""
    failing = 0 if run.last is None else len(run.last.failing)
    whose = "its message" if failing == 1 else "their messages"
    shown = f"with {whose}" if event.feedback == "details" else "by name only"
    parts = [f"{count_of(failing, 'failing case')} {shown}" if failing else "the error of the last attempt"]
    if json.loads(event.parameters):
        parts.append(f"parameters {one_line(event.parameters, REASON)}")
    if event.seed:
        parts.append(f"code seed {one_line(event.seed, REASON)}")
    return f"#{event.attempt} will see " + ", ".join(parts)

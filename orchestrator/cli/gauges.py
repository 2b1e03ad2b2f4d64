"""How far a run is from its limits, one bar a limit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
from rich.text import Text

from orchestrator.cli.appearance import Marks
from orchestrator.cli.wording import duration
from orchestrator.run import Run
from orchestrator_states.run import RunState

__all__ = ["Gauge", "gauge_line", "gauges"]

WIDTH: Final = 24
NAMES: Final = {
    "tokens": "tokens",
    "input_tokens": "input",
    "output_tokens": "output",
    "money_micro": "money",
}


@attrs.frozen
class Gauge:
    """One limit: what is used of it, and what the call under way may still use."""

    name: str
    used: float
    held: float
    limit: float
    words: str


def gauges(run: Run) -> Iterator[Gauge]:
    """A gauge for each limit in force, attempts first; repeats only once there are any."""
    ledger, budget = run.ledger, run.ledger.budget
    if budget.attempts is not None:
        judged = len(run.attempts)
        under_way = 1 if run.state in (RunState.GENERATING, RunState.EVALUATING) else 0
        words = f"{judged} of {budget.attempts}" + (", one under way" if under_way else "")
        yield Gauge("attempts", judged, under_way, budget.attempts, words)
    if budget.seconds is not None:
        limit = round(budget.seconds * 1_000_000)
        used = min(ledger.elapsed_us(), limit)
        yield Gauge("time", used, 0, limit, f"{duration(used)} of {duration(limit)}")
    for limit_name, spent, cap in ledger.sums():
        if cap is not None:
            held = ledger.held(limit_name)
            yield Gauge(NAMES[limit_name], spent, held, cap, amount(limit_name, spent, held, cap))
    if budget.repeats is not None and ledger.repeats:
        yield Gauge("repeats", ledger.repeats, 0, budget.repeats, f"{ledger.repeats} of {budget.repeats}")


def gauge_line(gauge: Gauge, marks: Marks) -> Text:
    """Name, bar and figures."""
    used = min(WIDTH, round(WIDTH * gauge.used / gauge.limit))
    held = min(WIDTH - used, round(WIDTH * gauge.held / gauge.limit))
    line = Text(f"  {gauge.name:<9}")
    line.append(marks.used * used, "cyan")
    line.append(marks.held * held, "cyan")
    line.append(marks.free * (WIDTH - used - held), "dim")
    return line.append(f"  {gauge.words}")


def amount(name: str, spent: int, held: int, cap: int) -> str:
    """`4,342 of 200,000, 3,000 held`."""
    if name == "money_micro":
        spent_words, held_words, cap_words = (f"{part / 1_000_000:,.4f}" for part in (spent, held, cap))
    else:
        spent_words, held_words, cap_words = (f"{part:,}" for part in (spent, held, cap))
    return f"{spent_words} of {cap_words}" + (f", {held_words} held" if held else "")

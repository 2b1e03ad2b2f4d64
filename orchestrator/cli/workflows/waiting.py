"""What a paused workflow waits for, in lines: what the decision rests on, what happened, the options, the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.cli.inert import inert
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import limit_name
from orchestrator.cli.workflows.resumeline import decide_line, resume_line
from orchestrator.workflow.decisions import About
from orchestrator.workflow.messages import Line, broken, grounds_in
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted

__all__ = ["command_lines", "more_of_the_limit", "waiting_lines"]


def waiting_lines(message: str, records: Sequence[Record], options: Sequence[str] = (), head: str = "") -> list[str]:
    """What the last decision rests on, what happened after `head`, and the options; text of others is further in."""
    lines = [*shown(grounds_in(records)), *shown(broken(head + message))]
    return [*lines, f"options: {', '.join(options)}"] if options else lines


def shown(lines: Iterable[Line]) -> Iterator[str]:
    """Lines that nothing acts on; no line of others begins where ours do."""
    return (f"{'  ' if line.is_theirs else ''}{inert(line.text)}" for line in lines)


def command_lines(place: RunPlace, run_id: str, about: str, options: Sequence[str], records: Sequence[Record]) -> str:
    """The command that decides; where a limit is what it waits at, the one that goes on with more of it."""
    if about == About.BUDGET:
        return f"go on with it: {resume_line(place, run_id)} {more_of_the_limit(records)}"
    return f"decide it: {decide_line(place, run_id, options)}"


def more_of_the_limit(records: Sequence[Record]) -> str:
    """The option that raises the limit which paused a workflow last."""
    limits = [record.event.limit for record in records if isinstance(record.event, BudgetExhausted)]
    return f"--{limit_name(limits[-1])} MORE"

"""What holds generator and evaluation in, and who held the judge, as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from orchestrator.cli.appearance import Marks
from orchestrator.cli.inert import one_line
from orchestrator.outcome import RunReport
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import Isolation

__all__ = ["integrity_line", "isolation_lines", "trust_lines", "unheld_line"]

LABEL = 80
LIST = 600
INTEGRITY = {
    "separate": "separate - the judge runs in a process that the candidate is not in",
    "cooperative": "cooperative - the candidate shares the judge's process",
    "host": "host - the evaluator does not say who holds the judge",
}
UNPINNED = "unpinned: nobody named the cases beforehand, they are taken from the report itself; `orchestrator pin` does"


def isolation_lines(established: IsolationEstablished, marks: Marks) -> Iterator[Text]:
    """The levels, what was tried and what became of it, and what nothing holds back."""
    held = f" {marks.bullet} ".join(
        f"{role} {one_line(found.label, LABEL, marks.ellipsis)}" for role, found in roles(established)
    )
    yield Text(f"isolation  {held}")
    for name, words in (("probed", probed), ("not enforced", not_enforced)):
        if told := told_once(established, words):
            yield Text(one_line(f"{name}: {told}", LIST, marks.ellipsis), "dim")


def unheld_line(established: IsolationEstablished | None) -> str:
    """What has to be known of a run that nothing held in; empty when something did."""
    if established is None:
        return ""
    names = [f"the {role}" for role, found in roles(established) if found.level == "none"]
    if not names:
        return ""
    verb = "runs" if len(names) == 1 else "run"
    return f"no isolation: {' and '.join(names)} {verb} with all rights of this process"


def integrity_line(integrity: str, established: IsolationEstablished | None = None) -> str:
    """Who held the judge, with what that means; empty for a run without a verdict.

    Without a sandbox a process of the candidate's can reach the judge's files and memory, separate as they are.
    """
    if not integrity:
        return ""
    level = "strong" if established is None else established.evaluator.level
    reachable = integrity == "separate" and level != "strong"
    unheld = f", but nothing keeps the two apart at isolation {level}" if reachable else ""
    return f"integrity: {INTEGRITY.get(integrity, integrity)}{unheld}"


def trust_lines(report: RunReport) -> Iterator[str]:
    """What there is to know of the verdict that counts: who named its cases, and who held the judge."""
    if report.integrity and not report.is_pinned:
        yield UNPINNED
    if integrity := integrity_line(report.integrity, report.isolation):
        yield integrity


def told_once(established: IsolationEstablished, words: Callable[[Isolation], str]) -> str:
    """Something of both, told once where it is the same."""
    if words(established.generator) == words(established.evaluator):
        return words(established.generator)
    return "; ".join(f"{role}: {words(found)}" for role, found in roles(established) if words(found))


def probed(found: Isolation) -> str:
    """What was tried from inside, by what became of it; empty where nothing was."""
    outcomes = dict.fromkeys(probe.outcome for probe in found.probes)
    names = {each: ", ".join(probe.name for probe in found.probes if probe.outcome == each) for each in outcomes}
    return " - ".join(f"{outcome} {tried}" for outcome, tried in names.items())


def not_enforced(found: Isolation) -> str:
    """What nothing holds back."""
    return ", ".join(found.not_enforced)


def roles(established: IsolationEstablished) -> Iterator[tuple[str, Isolation]]:
    """Both, with their names."""
    yield "generator", established.generator
    yield "evaluator", established.evaluator

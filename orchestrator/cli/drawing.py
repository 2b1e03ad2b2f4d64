"""The commands `graph` and `events`: the tables that decide, and the events that are told."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing

from orchestrator.blocking import run_blocking
from orchestrator.catalogue import catalogue_text
from orchestrator.cli.appearance import ASCII, marks_for
from orchestrator.cli.choices import GraphFormat
from orchestrator.cli.runplace import RunPlace
from orchestrator.history import UnknownRunError, find_run, load_run
from orchestrator.run import Run
from orchestrator_states.catalogue import UnknownLifecycleError, lifecycle
from orchestrator_states.dot import to_dot
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.svg import PathOverlay, to_svg
from orchestrator_states.table_json import to_json
from orchestrator_states.terminal import to_text

__all__ = ["draw", "list_events"]


def draw(name: str, form: GraphFormat, place: RunPlace) -> None:
    """A lifecycle, or the way a run took through its own; UnknownLifecycleError for neither."""
    try:
        table, run = lifecycle(name), None
    except UnknownLifecycleError:
        run = run_called(name, place)
        if run is None:
            raise
        table = lifecycle(run.lifecycle)
    sys.stdout.write(drawn(table, form, run))


def list_events() -> None:
    """The catalogue of events."""
    sys.stdout.write(catalogue_text())


def drawn(table: Lifecycle, form: GraphFormat, run: Run | None) -> str:
    """The table in one of the forms; pictures show the way of the run, if there is one."""
    match form:
        case GraphFormat.TEXT:
            return to_text(table, ascii_only=marks_for(sys.stdout) is ASCII)
        case GraphFormat.MERMAID:
            return to_mermaid(table, None if run is None else path_of(run).visits)
        case GraphFormat.DOT:
            return to_dot(table)
        case GraphFormat.SVG:
            return to_svg(table, path=None if run is None else path_of(run))
        case GraphFormat.JSON:
            return to_json(table)


def run_called(name: str, place: RunPlace) -> Run | None:
    """The run of this id, or None where there is no journal or no such run."""
    if not place.journal_file.is_file():
        return None
    with closing(place.journal_to_read()) as journal:
        try:
            return run_blocking(load_run(journal, run_blocking(find_run(journal, name))))
        except UnknownRunError:
            return None


def path_of(run: Run) -> PathOverlay:
    """How often the run came into each state, and took each move."""
    moves = [record for record in run.records if record.source != record.target]
    visits = Counter(record.target for record in moves)
    visits[run.records[0].source] += 1
    return PathOverlay(
        visits=dict(visits),
        moves=dict(Counter((record.source, record.event.name, record.target) for record in moves)),
    )

"""The commands `graph` and `events`: the tables that decide, and the events that are told."""

from __future__ import annotations

import json
import sys
from contextlib import closing

from orchestrator.blocking import run_blocking
from orchestrator.catalogue import catalogue_text
from orchestrator.cli.appearance import ASCII, marks_for
from orchestrator.cli.choices import GraphFormat
from orchestrator.cli.runplace import RunPlace
from orchestrator.course import course_of
from orchestrator.execution import Execution
from orchestrator.history import UnknownRunError, load_execution
from orchestrator_states.catalogue import UnknownLifecycleError, lifecycle
from orchestrator_states.dot import to_dot
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg import to_svg
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


def drawn(table: Lifecycle, form: GraphFormat, run: Execution | None) -> str:
    """The table in one of the forms, with the way of the run, if there is one."""
    path = None if run is None else course_of(run.records)
    match form:
        case GraphFormat.TEXT:
            head = "" if run is None else f"run {run.run_id}   {run.state}\n"
            return head + to_text(table, ascii_only=marks_for(sys.stdout) is ASCII, path=path)
        case GraphFormat.MERMAID:
            return to_mermaid(table, path=path)
        case GraphFormat.DOT:
            return to_dot(table, path=path)
        case GraphFormat.SVG:
            return to_svg(table, path=path)
        case GraphFormat.JSON:
            return to_json(table) if run is None or path is None else course_json(table, run, path)


def course_json(table: Lifecycle, run: Execution, path: PathOverlay) -> str:
    """The table of a run, and the way the run took through it."""
    moves = [
        {"source": source, "event": event, "target": target, "taken": count}
        for (source, event, target), count in path.moves.items()
    ]
    states = {
        state: {"visits": visits, "time_us": path.times_us.get(state, 0)} for state, visits in path.visits.items()
    }
    told = {"run": run.run_id, "state": run.state, "states": states, "moves": moves, "table": table.as_json()}
    return json.dumps(told, indent=2) + "\n"


def run_called(name: str, place: RunPlace) -> Execution | None:
    """The run of this id, or None where there is no journal or no such run."""
    if not place.journal_file.is_file():
        return None
    with closing(place.journal_to_read()) as journal:
        try:
            return run_blocking(load_execution(journal, place.found(journal, name)))
        except UnknownRunError:
            return None

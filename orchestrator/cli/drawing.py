"""The commands `graph` and `events`: the tables that decide, and the events that are told."""

from __future__ import annotations

import json
import sys
from contextlib import closing

from orchestrator.blocking import run_blocking
from orchestrator.catalogue import catalogue_text
from orchestrator.cli.choices import GraphFormat
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.tableforms import drawn
from orchestrator.course import course_of
from orchestrator.execution import Execution
from orchestrator.history import UnknownRunError, load_execution
from orchestrator_states.catalogue import UnknownLifecycleError, lifecycle
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.path import PathOverlay

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
    sys.stdout.write(drawn(table, form) if run is None else drawn_run(table, form, run))


def list_events() -> None:
    """The catalogue of events."""
    sys.stdout.write(catalogue_text())


def drawn_run(table: Lifecycle, form: GraphFormat, run: Execution) -> str:
    """The table in one of the forms, with the way of the run."""
    path = course_of(run.records)
    if form == GraphFormat.JSON:
        return course_json(table, run, path)
    head = f"run {run.run_id}   {run.state}\n" if form == GraphFormat.TEXT else ""
    return head + drawn(table, form, path)


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

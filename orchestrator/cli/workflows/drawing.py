"""The command `workflow graph`: a domain's phases as a lifecycle, and the way that a workflow took through them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from orchestrator.blocking import run_blocking
from orchestrator.cli.choices import GraphFormat
from orchestrator.cli.exitcodes import RequestError
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.tableforms import drawn
from orchestrator.cli.workflows.places import file_of, find_domain, find_workflow
from orchestrator.history import load_execution, tables_in
from orchestrator.workflow.examples import EXAMPLES
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.record import Record
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.path import PathOverlay
from orchestrator_states.reading import read_table

__all__ = ["draw_domain"]


def draw_domain(name: str, form: GraphFormat, place: RunPlace) -> None:
    """The phases of a domain, or those of a workflow with its way through them; RequestError for neither."""
    if name in EXAMPLES or Path(name).exists():
        table, path = find_domain(name, place.root, is_executed=False).domain.lifecycle, None
    elif place.journal_file.is_file():
        table, path = table_of_run(name, place)
    else:
        file_of(name)  # says that there is no such domain, and which there are
        return
    sys.stdout.write(drawn(table, form, path))


def table_of_run(name: str, place: RunPlace) -> tuple[Lifecycle, PathOverlay]:
    """The table of the domain as a workflow recorded it, and its way."""
    with closing(place.journal_to_read()) as journal:
        run = run_blocking(load_execution(journal, find_workflow(journal, name)))
    start = run.records[0].event
    assert isinstance(start, ExecutionStart)
    tables = [read_table(table) for table in tables_in(start).values() if isinstance(table, dict)]
    if run.lifecycle != "workflow" or not tables:
        raise RequestError(f"run {run.run_id} is no workflow, but of the lifecycle {run.lifecycle!r}: use `graph`")
    return tables[0], way_of(run.records, tables[0])


def way_of(records: Sequence[Record], table: Lifecycle) -> PathOverlay:
    """Visits, moves and times of the domain's phases; what lies between two invocations is nobody's time."""
    moves = [record for record in records if record.lifecycle == table.name]
    visits = Counter(record.target for record in moves)
    times: Counter[str] = Counter()
    phase: str = table.initial
    for one, other in pairwise(records):
        if one.lifecycle == table.name:
            phase = one.target
        is_idle = isinstance(one.event, ExecutionEnd) or isinstance(other.event, ExecutionStart)
        if not is_idle and phase not in (table.initial, *table.resting):
            times[phase] += max(0, other.at - one.at)
    taken = Counter((record.source, record.event.name, record.target) for record in moves)
    return PathOverlay(visits={table.initial: 1, **visits}, moves=dict(taken), times_us=dict(times))

"""Moves: every record is a row or a note of the recorded table, from the state the run was in."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs

from orchestrator.importing import Export
from orchestrator.run import Run
from orchestrator_events.errors import StateError
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record
from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.machine import IllegalTransitionError, TableMachine

__all__ = ["Follower", "Moves", "machine_in"]

LONGEST_TABLE = 32_000
"""Characters of a table's JSON; the engine's own has 3,300, and checking one takes time that grows with its square."""


def machine_in(export: Export) -> TableMachine:
    """A fresh machine of the recorded table, not shared with anything; StateError when there is none in it."""
    if len(json.dumps(export.table)) > LONGEST_TABLE:
        raise LifecycleError(export.source, (f"the table is longer than {LONGEST_TABLE} characters",))
    table = Lifecycle.from_json(export.table)
    if table.as_json() != export.table:
        raise LifecycleError(table.name, ("the recorded table has fields that no table has",))
    return TableMachine(table)


@attrs.define(eq=False)
class Follower:
    """A model that has a state and nothing else."""

    state: str

    def moved(self, event: Event, target: str) -> None:  # noqa: ARG002 -- the port's signature
        """Go where the table says."""
        self.state = target


@attrs.define(eq=False)
class Moves:
    """Holds each record against the table."""

    machine: TableMachine
    state: str = ""
    name: str = attrs.field(default="moves", init=False)

    @classmethod
    def of(cls, export: Export) -> Moves:
        """The check for one export; StateError when its table cannot be read."""
        try:
            machine = machine_in(export)
        except StateError:
            raise
        except ValueError as error:
            raise LifecycleError(export.source, (f"no machine can be built of the table: {error}",)) from error
        return cls(machine, machine.table.initial)

    def look(self, run: Run, record: Record) -> Iterator[str]:  # noqa: ARG002 -- the state is followed here
        """What the table does not allow."""
        table = self.machine.table
        event = record.event
        if record.lifecycle != table.name:
            yield f"is of the lifecycle {record.lifecycle!r:.80}, the table is of {table.name!r:.80}"
        if record.source != self.state:
            yield f"leaves {record.source!r:.80}, but the run is in {self.state!r:.80}"
        if isinstance(event, ExecutionStart) and event.table_digest != table.digest:
            yield f"was decided by the table {event.table_digest:.80}, the recorded one is {table.digest}"
        follower = Follower(self.state)
        try:
            self.machine.fire(follower, event)
        except IllegalTransitionError as error:
            yield str(error)
        else:
            if follower.state != record.target:
                yield f"{event.name} leads from {self.state!r:.80} to {follower.state!r:.80}, not {record.target!r:.80}"
        self.state = record.target

    def end(self, run: Run) -> Iterator[str]:  # noqa: ARG002 -- every state is one a journal may end in
        """Nothing: how an invocation ends is for the markers."""
        yield from ()

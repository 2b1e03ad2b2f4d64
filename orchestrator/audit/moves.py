"""Moves: every record is a row or a note of the recorded table, from the state the run was in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import attrs

from orchestrator.execution import Execution
from orchestrator.history import tables_in
from orchestrator.importing import Export
from orchestrator.jsondata import JSON
from orchestrator_events.errors import StateError
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record
from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.machine import IllegalTransitionError, TableMachine

__all__ = ["Follower", "Moves", "machine_in", "machines_in"]

LONGEST_TABLE = 32_000
"""Characters of a table's JSON; the engine's own has 3,300, and checking one takes time that grows with its square."""

MOST_TABLES = 8
"""Tables beside the run's own."""


def machine_in(export: Export) -> TableMachine:
    """A fresh machine of the recorded table, not shared with anything; StateError when there is none in it."""
    return machine_of_table(export.table, export.source)


def machines_in(export: Export) -> dict[str, TableMachine]:
    """A machine for each lifecycle in the stream, by its name: the run's own first; StateError as above."""
    machines = [machine_in(export)]
    if len(export.tables) > MOST_TABLES:
        raise LifecycleError(export.source, (f"there are more than {MOST_TABLES} tables",))
    for name, data in export.tables.items():
        machine = machine_of_table(data, export.source)
        if machine.table.name != name or name == machines[0].table.name:
            raise LifecycleError(export.source, (f"the table {machine.table.name!r:.80} is listed as {name!r:.80}",))
        machines.append(machine)
    return {machine.table.name: machine for machine in machines}


def machine_of_table(data: Mapping[str, JSON], source: str) -> TableMachine:
    """A fresh machine of one table."""
    if len(json.dumps(data)) > LONGEST_TABLE:
        raise LifecycleError(source, (f"the table is longer than {LONGEST_TABLE} characters",))
    table = Lifecycle.from_json(data)
    if table.as_json() != data:
        raise LifecycleError(table.name, ("the recorded table has fields that no table has",))
    try:
        return TableMachine(table)
    except StateError:
        raise
    except ValueError as error:
        raise LifecycleError(source, (f"no machine can be built of the table: {error}",)) from error


@attrs.define(eq=False)
class Follower:
    """A model that has a state and nothing else."""

    state: str

    def moved(self, event: Event, target: str) -> None:  # noqa: ARG002 -- the port's signature
        """Go where the table says."""
        self.state = target


@attrs.define(eq=False)
class Moves:
    """Holds each record against the table of its lifecycle; each lifecycle's state is followed apart."""

    machines: dict[str, TableMachine]
    """By name; the run's own is the first."""
    tables: dict[str, JSON] = attrs.Factory(dict[str, JSON])
    """Those beside the run's own, as the export has them."""
    states: dict[str, str] = attrs.Factory(dict[str, str])
    name: str = attrs.field(default="moves", init=False)

    @classmethod
    def of(cls, export: Export) -> Moves:
        """The check for one export; StateError when a table of it cannot be read."""
        machines = machines_in(export)
        states = {name: str(machine.table.initial) for name, machine in machines.items()}
        return cls(machines, dict(export.tables), states)

    @property
    def own(self) -> Lifecycle:
        """The run's own table."""
        return next(iter(self.machines.values())).table

    def look(self, run: Execution, record: Record) -> Iterator[str]:  # noqa: ARG002 -- the states are followed here
        """What the table does not allow."""
        event = record.event
        if isinstance(event, ExecutionStart):
            yield from self.decided_by(event)
        machine = self.machines.get(record.lifecycle)
        if machine is None:
            yield f"is of the lifecycle {record.lifecycle!r:.80}, the table is of {self.own.name!r:.80}"
            machine = self.machines[self.own.name]
        lifecycle = machine.table.name
        state = self.states[lifecycle]
        if record.source != state:
            yield f"leaves {record.source!r:.80}, but the run is in {state!r:.80}"
        follower = Follower(state)
        try:
            machine.fire(follower, event)
        except IllegalTransitionError as error:
            yield str(error)
        else:
            if follower.state != record.target:
                yield f"{event.name} leads from {state!r:.80} to {follower.state!r:.80}, not {record.target!r:.80}"
        self.states[lifecycle] = record.target

    def decided_by(self, event: ExecutionStart) -> Iterator[str]:
        """Tables that are not those which the run was decided by."""
        if event.table_digest != self.own.digest:
            yield f"was decided by the table {event.table_digest:.80}, the recorded one is {self.own.digest}"
        if tables_in(event) != self.tables:
            yield "names other tables beside its own than the export holds"

    def end(self, run: Execution) -> Iterator[str]:  # noqa: ARG002 -- every state is one a journal may end in
        """Nothing: how an invocation ends is for the markers."""
        yield from ()

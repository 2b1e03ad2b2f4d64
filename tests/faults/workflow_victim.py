"""A process that runs or resumes the software epic and kills itself, SIGKILL, at one named place.

    python workflow_victim.py DIRECTORY run|resume PLACE

PLACE is `before:N` or `after:N` (the N-th append), `phase:N` or `phased:N` (as the N-th phase begins, or has done its
work and not yet said so), `generate:N` (inside the N-th call), `program:N` (as the N-th program is started: a suite),
`rename:N` (as the N-th state file is put into its place), `new:before`, `new:after` or `new:inside` (at the first
place before an append, after one, or inside an effect, that no process before was killed at; they are told apart by
the phases that have an outcome, and kept in DIRECTORY/killed; with `:N` behind it about every N-th of them), or
`nowhere`. DIRECTORY/epic holds the epic.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any
from zlib import crc32

import attrs

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports import Generation, Request
from orchestrator.workflow import PhaseOutcome, Workflow, WorkflowDone, load_domain
from orchestrator.workflow.examples import EXAMPLES
from orchestrator.workflow.examples.software_epic.script import EpicScript
from orchestrator.workflow.executors import calls_of
from orchestrator_events.journal import Batch

RUN_ID = "victim"
OUTCOMES = ("phase:finished", "phase:failed")


@attrs.define(eq=False)
class Killer:
    """Kills this process at one place."""

    directory: Path
    place: str
    counts: Counter[str] = attrs.Factory(Counter)
    places: set[str] = attrs.Factory(set[str])
    """Places that this process has reached, as they are told apart."""
    outcomes: int = 0
    """Phases that have an outcome so far, over all processes."""

    def here(self, what: str, detail: str = "") -> None:
        """This place is reached once more; `new:…` dies at each once, over all processes."""
        self.counts[what] += 1
        if self.place == f"{what}:{self.counts[what]}":
            os.kill(os.getpid(), signal.SIGKILL)
        known, key = self.directory / "killed", f"{what}:{self.outcomes}:{detail}"
        self.places.add(key)
        side, _, step = self.place.removeprefix("new:").partition(":")
        is_wanted = side == side_of(what) and is_chosen(key, int(step or 1))
        if is_wanted and (not known.exists() or key not in known.read_text().splitlines()):
            with known.open("a") as file:
                file.write(f"{key}\n")
                file.flush()
                os.fsync(file.fileno())
            os.kill(os.getpid(), signal.SIGKILL)


def side_of(what: str) -> str:
    """Where a place is: before or after an append, or inside an effect."""
    return what if what in ("before", "after") else "inside"


def is_chosen(key: str, step: int) -> bool:
    """Whether a place is among about every `step`-th, the same ones each time."""
    return crc32(key.encode()) % step == 0


class WatchedJournal(SqliteJournal):
    """A journal that may be killed before and after each append."""

    def __init__(self, killer: Killer) -> None:
        super().__init__(killer.directory / "journal.sqlite")
        self.killer = killer
        killer.outcomes = asyncio.run(self.recorded_outcomes())

    async def recorded_outcomes(self) -> int:
        """How many phases have an outcome so far."""
        return len([entry async for entry in self.read(RUN_ID) if entry.record.event.name in OUTCOMES])

    async def append(self, batch: Batch) -> None:
        """Append, with a chance to die on either side."""
        event = batch.records[-1].event
        inside = batch.run_id.removeprefix(RUN_ID)  # a child's records are places of their own, attempt by attempt
        last = ":".join(filter(None, (inside, str(getattr(event, "attempt", "")) if inside else "", event.name)))
        self.killer.here("before", last)
        await super().append(batch)
        told = [record for record in batch.records if record.event.name in OUTCOMES]
        self.killer.outcomes += len(told)
        self.killer.here("after", last)


class WatchedScript(EpicScript):
    """The epic's script, which may be killed inside a call."""

    killer: Killer

    async def generate(self, request: Request) -> Generation:
        """Answer, unless this call is the last."""
        with (self.killer.directory / "calls").open("a") as file:
            file.write(f"{request.idempotency_key}\n")
        self.killer.here("generate")
        return await super().generate(request)


def watched(call: Callable[..., Any], killer: Killer) -> Callable[..., Any]:
    """A phase that may be killed as it begins and as it ends."""

    async def phase(state: Mapping[str, Any], components: object) -> PhaseOutcome:
        killer.here("phase")
        result = call(state, components)
        outcome: PhaseOutcome = await result if isawaitable(result) else result
        killer.here("phased")
        return outcome

    return phase


def listen(killer: Killer) -> None:
    """Have the interpreter say when a program is started and when a state file is put into its place."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            killer.here("program")
        elif event == "os.rename" and str(arguments[1]).endswith("-state.json"):
            killer.here("rename")

    sys.addaudithook(hook)


def main(directory: Path, action: str, place: str) -> None:
    """Run or resume, and print the outcome as JSON."""
    killer = Killer(directory, place)
    listen(killer)
    domain = attrs.evolve(load_domain(EXAMPLES["software-epic"]), state_directory=directory / "state")
    generator = WatchedScript()
    generator.killer = killer
    with WatchedJournal(killer) as journal:
        workflow = Workflow(
            domain,
            phases={name: watched(call, killer) for name, call in calls_of(domain).items()},
            generator=generator,
            journal=journal,
        )
        parameters = {"epic": str(directory / "epic"), "workspace": str(directory / "workspace")}
        result = workflow.run(parameters, run_id=RUN_ID) if action == "run" else workflow.resume(RUN_ID)
    assert isinstance(result, WorkflowDone)
    file = json.loads((directory / "state" / f"{result.workflow_id}-state.json").read_text())
    assert file == dict(result.state)
    volatile = ("last_updated", "metrics", "parameters", "epic", "workspace")
    state = {name: value for name, value in result.state.items() if name not in volatile}
    modules = {path.name: path.read_text() for path in (directory / "workspace" / "source").iterdir()}
    way = [record.target for record in result.records if record.lifecycle == domain.name]
    told = {"state": state, "modules": modules, "way": way, "counts": killer.counts, "places": sorted(killer.places)}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])

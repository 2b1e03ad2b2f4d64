"""A small domain, phases from a script, and a way to kill a workflow anywhere and resume it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock
from orchestrator.workflow import Domain, Phase, PhaseOutcome, Workflow

Script = Mapping[str, list[object]]


@attrs.define(eq=False)
class ScriptedPhases:
    """Gives each phase its outcomes in order, the last one again and again; raises those that are exceptions."""

    script: dict[str, list[object]]
    executed: list[str] = attrs.Factory(list)
    states: list[dict[str, Any]] = attrs.Factory(list)
    """The states that the phases were given."""

    def calls(self) -> dict[str, Callable[..., Any]]:
        """One callable a phase."""
        return {phase: self.call(phase) for phase in self.script}

    def call(self, phase: str) -> Callable[..., Any]:
        """The callable of one phase."""

        async def execute(state: dict[str, Any], components: object) -> object:
            outcomes = self.script[phase]
            number = self.executed.count(phase)
            self.executed.append(phase)
            self.states.append(state)
            outcome = outcomes[min(number, len(outcomes) - 1)]
            if callable(outcome) and not isinstance(outcome, type):
                outcome = outcome(state, components)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return execute


def outcome(next_phase: str, output: str = "", **updates: Any) -> PhaseOutcome:
    """An outcome with updates given by name."""
    return PhaseOutcome(next_phase, updates, output)


@attrs.define(eq=False)
class Bench:
    """A domain of three phases in a directory of its own, its journal, its phases."""

    directory: Path
    phases: ScriptedPhases
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    clock: ManualClock = attrs.Factory(ManualClock)
    domain: Domain = attrs.field(init=False)
    end: Any = attrs.field(init=False, default=None)
    """How a whole run of it ended."""

    def __attrs_post_init__(self) -> None:
        self.domain = self.domain_with()

    def domain_with(self, **fields: Any) -> Domain:
        """The domain, with these fields."""
        phases: tuple[Phase | str, ...] = ("00-init", "01-work", "02-check", "done")
        given = {"name": "demo", "phases": phases, "title": "Demo", "state_directory": self.directory / "state"}
        return Domain(**{**given, **fields})

    def workflow(self, **options: Any) -> Workflow:
        """An engine for it; a new one each time, as after a crash."""
        given = {"phases": self.phases.calls(), "journal": self.journal, "clock": self.clock}
        domain = options.pop("domain", self.domain)
        return Workflow(domain, **{**given, **options})

    def file(self, name: str = "epic-1") -> Path:
        """The state file of a workflow."""
        return self.directory / "state" / f"{name}-state.json"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A domain whose phases all succeed."""
    return Bench(
        tmp_path,
        ScriptedPhases(
            {
                "00-init": [outcome("01-work", "The epic is parsed.", workflow_id="epic-1")],
                "01-work": [outcome("02-check", "The work is done.", files=["a.py"])],
                "02-check": [outcome("done", "All is well.")],
            }
        ),
    )


@pytest.fixture
def make_outcome() -> Callable[..., PhaseOutcome]:
    """Makes an outcome with updates given by name."""
    return outcome

"""What every engine keeps from the log and from the person it asks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs
import pytest

from orchestrator import Orchestrator
from orchestrator.agent import Agent
from orchestrator.discretion import DiscreetGuard
from orchestrator.ports import Approver
from orchestrator.redaction import Secrets
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator, ScriptedProvider
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.engine import Workflow
from orchestrator.workflow.phases import PhaseOutcome
from orchestrator_events.bus import Bus
from orchestrator_events.subscribers.guard import guard_budget

KEY = "sk-3fa85f64"
SECRETS = Secrets({"key": KEY})


@attrs.define
class Person:
    """Says yes, and remembers what was asked."""

    asked: list[str] = attrs.Factory(list[str])

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's name
        """Yes."""
        self.asked.append(prompt)
        return True


def orchestrator(bus: Bus, person: Approver) -> Approver | None:
    """Whom an orchestrator asks."""
    script = ScriptedGenerator([]), ScriptedEvaluator([])
    made = Orchestrator(generator=script[0], evaluator=script[1], bus=bus, approver=person, secrets=SECRETS)
    return made.driver.approver


def agent(bus: Bus, person: Approver) -> Approver | None:
    """Whom an agent asks."""
    return Agent(providers={"scripted": ScriptedProvider([])}, bus=bus, approver=person, secrets=SECRETS).parts.approver


def workflow(bus: Bus, person: Approver) -> Approver | None:
    """Whom a workflow asks."""
    domain = Domain(name="demo", phases=("00-work", "done"))
    phases = {"00-work": lambda _state, _components: PhaseOutcome("done")}
    return Workflow(domain, phases=phases, bus=bus, approver=person, secrets=SECRETS).parts.approver


@pytest.mark.parametrize("made", [orchestrator, agent, workflow])
def test_neither_the_log_nor_the_person_asked_is_shown_a_secret(
    made: Callable[[Bus, Approver], Approver | None], caplog: pytest.LogCaptureFixture
) -> None:
    """What a subscriber's error says is noted and logged redacted, and so is what a person is asked."""
    bus, person = Bus(), Person()
    approver = made(bus, person)
    assert approver is not None
    asyncio.run(approver.approve("run", f"Send {KEY}?"))
    failure = bus.failure("host", "attempt:failed", ValueError(f"refused: {KEY}"))
    assert (person.asked, failure.error) == (["Send [redacted key]?"], "ValueError: refused: [redacted key]")
    assert [KEY in record.getMessage() for record in caplog.records] == [False]


def test_engines_that_share_a_bus_clean_a_request_once() -> None:
    """However many engines use a bus, its guard is asked about a request without secrets, cleansed one time."""
    bus = Bus()
    for _ in range(3):
        orchestrator(bus, Person())
    assert isinstance(bus.guard, DiscreetGuard)
    assert bus.guard.guard is guard_budget

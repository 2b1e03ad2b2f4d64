"""What the children of a phase do: a conformance run, or an agent's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.execution import Execution
from orchestrator.nesting import Parent
from orchestrator.workflow.components.port import ComponentHost
from orchestrator_events.budget import Budget

if TYPE_CHECKING:
    from orchestrator.agent.engine import Agent
    from orchestrator.agent.outcome import AgentReport
    from orchestrator.engine import Orchestrator
    from orchestrator.outcome import Exhausted, Passed
    from orchestrator.spec import MergedSpec

__all__ = ["AgentWork", "ConformanceWork"]


@attrs.frozen(eq=False)
class ConformanceWork:
    """Has a generator conform to a spec."""

    spec: MergedSpec
    orchestrator: Orchestrator
    lifecycle: str = attrs.field(default="run", init=False)

    @property
    def budget(self) -> Budget:
        """The orchestrator's own."""
        return self.orchestrator.budget

    def has_result(self, child: Execution) -> bool:
        """Passed, or exhausted."""
        return child.state in ("passed", "exhausted")

    async def drive(self, host: ComponentHost, child_id: str, budget: Budget, parent: Parent, known: bool) -> None:  # noqa: FBT001 -- see the port
        """Run, or resume."""
        engine = attrs.evolve(self.orchestrator, budget=budget, **shared(host, self.orchestrator))
        if known:
            await engine.aresume(child_id)
        else:
            await engine.arun(self.spec, run_id=child_id, parent=parent)

    def result(self, child: Execution) -> Passed | Exhausted:
        """The report of the run."""
        from orchestrator.history import report_of
        from orchestrator.outcome import Exhausted, Passed
        from orchestrator.run import Run

        assert isinstance(child, Run)
        report = report_of(child)
        assert isinstance(report, Passed | Exhausted)
        return report


@attrs.frozen(eq=False)
class AgentWork:
    """Has an agent answer a prompt."""

    prompt: str
    engine: Agent
    lifecycle: str = attrs.field(default="agent", init=False)

    @property
    def budget(self) -> Budget:
        """The agent's own, its turns among it."""
        return self.engine.budget_in_force

    def has_result(self, child: Execution) -> bool:
        """An answer, or a limit."""
        return child.state in ("completed", "incomplete")

    async def drive(self, host: ComponentHost, child_id: str, budget: Budget, parent: Parent, known: bool) -> None:  # noqa: FBT001 -- see the port
        """Run, or resume."""
        engine = attrs.evolve(self.engine, budget=budget, **shared(host, self.engine))
        if known:
            await engine.aresume(child_id)
        else:
            await engine.arun(self.prompt, run_id=child_id, parent=parent)

    def result(self, child: Execution) -> AgentReport:
        """The report of the run."""
        from orchestrator.agent.outcome import AgentCompleted, AgentIncomplete
        from orchestrator.agent.reporting import report_on
        from orchestrator.agent.run import AgentRun

        assert isinstance(child, AgentRun)
        report = report_on(child, self.engine.name)
        assert isinstance(report, AgentCompleted | AgentIncomplete)
        return report


def shared(host: ComponentHost, engine: Orchestrator | Agent) -> dict[str, Any]:
    """What a child has of the workflow, whatever its engine was given."""
    return {
        "journal": host.journal,
        "bus": host.bus,
        "clock": host.clock,
        "approver": engine.approver or host.approver,
        "secrets": host.secrets or engine.secrets,
    }

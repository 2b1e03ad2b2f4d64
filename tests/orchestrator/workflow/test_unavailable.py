"""A generator that is not there: nothing is charged, the phase has not failed, and the workflow goes on afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError, TransientGenerationError
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow import Domain, WorkflowInterruptedError
from orchestrator.workflow.components.settings import component_settings
from orchestrator_events.budget import Charge
from orchestrator_events.workflow import PhaseAbandoned, PhaseAnswered, SubagentFinished

GOOD = '{"next_phase": "done", "state_updates": {}, "output": "worked"}'
AT_ONCE = RetryPolicy(retries=1, first_wait=0)


def unreachable() -> TransientGenerationError:
    """No connection came about."""
    return TransientGenerationError("connection refused", is_unreachable=True)


@pytest.fixture
def filed(bench: Any) -> Any:
    """A domain of one phase that is a file."""
    directory = bench.directory / "phases"
    directory.mkdir()
    (directory / "01-work.md").write_text("Write the code.\n")
    bench.phases.script.clear()
    bench.domain = Domain(
        name="demo", phases=("01-work", "done"), phase_directory=directory, state_directory=bench.directory / "state"
    )
    return bench


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([GeneratorUnavailableError("no such model")], 1),
        ([unreachable(), unreachable()], 2),
        ([TransientGenerationError("busy", retry_after=100_000)], 1),
    ],
    ids=["for good", "not reached", "put off for days"],
)
def test_a_phase_file_waits_for_its_generator(filed: Any, answers: list[Exception], asked: int) -> None:
    """The workflow is left open in the phase, which is executed once the generator is back: no failure is counted."""
    with pytest.raises(WorkflowInterruptedError) as raised:
        filed.workflow(generator=ScriptedGenerator(answers), retries=AT_ONCE).run(run_id="r")
    report = raised.value.report
    names = [record.event.name for record in report.records]
    assert isinstance(raised.value.__cause__, GeneratorUnavailableError)
    assert (names.count("phase:answered"), names.count("phase:failed"), names[-3:]) == (
        asked,
        0,
        ["phase:abandoned", "orchestrator:complete", "execution:end"],
    )
    assert (report.phase, report.state.get("error"), report.records[-1].target) == ("01-work", None, "executing")
    result = filed.workflow(generator=ScriptedGenerator([GOOD])).resume("r")
    assert (result.status, result.executions) == ("done", {"01-work": 2})


def test_what_nobody_received_is_not_charged(filed: Any) -> None:
    """A call for which no connection came about costs nothing."""
    with pytest.raises(WorkflowInterruptedError) as raised:
        filed.workflow(generator=ScriptedGenerator([unreachable()]), retries=RetryPolicy(retries=0)).run(run_id="r")
    events = [record.event for record in raised.value.report.records]
    charges = [event.charge for event in events if isinstance(event, PhaseAnswered | PhaseAbandoned)]
    assert charges == [Charge(), Charge()]


@pytest.mark.parametrize("error", [GeneratorUnavailableError("gone"), unreachable()], ids=["for good", "not reached"])
def test_a_subagent_waits_for_its_generator(bench: Any, make_outcome: Callable[..., Any], error: Exception) -> None:
    """A phase whose subagent finds no generator is executed again once it is back."""

    async def spawn(state: object, components: Any) -> object:
        del state
        result = await components.subagents.spawn("PLANNER", {"task": "plan"})
        return make_outcome("02-check", result.status)

    def workflow(*answers: object) -> Any:
        components = component_settings({"subagent-spawner": {"retries": {"retries": 0}}}, "here")
        return bench.workflow(
            components=components,
            generator=ScriptedGenerator(answers),
            phases={**bench.phases.calls(), "01-work": spawn},
        )

    with pytest.raises(WorkflowInterruptedError) as raised:
        workflow(error).run(run_id="r")
    events = [record.event for record in raised.value.report.records]
    assert ([event.charge for event in events if isinstance(event, SubagentFinished)], raised.value.report.phase) == (
        [Charge()],
        "01-work",
    )
    result = workflow('{"status": "success", "chunks": []}').resume("r")
    assert (result.status, result.executions["01-work"]) == ("done", 2)

"""Subagents' calls at the gate: who answers it may deny or change them; and calls that a phase leaves behind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.ports import Generation, Request
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow import Components, Domain, PhaseOutcome, Workflow, WorkflowInterruptedError
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.decision import AskUser, Deny, Inject, Modify
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch
from orchestrator_events.run import GenerationRequested
from orchestrator_events.workflow import PhaseFailed, SubagentFinished, SubagentSpawned

BUILT = json.dumps({"status": "success", "files_changed": ["a.py"]})
BUDGET = Budget(attempts=20, repeats=None, tokens=20_000)


async def build(_: object, components: Components) -> PhaseOutcome:
    """A phase with one subagent."""
    result = await components.subagents.spawn("IMPLEMENTER", {"story": "add"})
    return PhaseOutcome("done", {"workflow_id": "epic", "told": result.status})


def workflow(directory: Path, generator: Any, **options: Any) -> Workflow:
    """A workflow of that one phase."""
    domain = Domain(name="demo", phases=("build", "done"), state_directory=directory)
    options = {"phases": {"build": build}, "journal": MemoryJournal(), "budget": BUDGET, **options}
    return Workflow(domain, generator=generator, **options)


def events(result: Any, kind: type[Any]) -> list[Any]:
    """The events of a kind."""
    return [record.event for record in result.records if isinstance(record.event, kind)]


def findings(made: Workflow, run_id: str) -> tuple[object, ...]:
    """What the audit finds."""
    return audit(parse_export(asyncio.run(export_json(made.journal, run_id)))).findings


def test_a_denied_subagent_is_never_called(tmp_path: Path) -> None:
    """Denied: nothing is spawned, nothing is held, and the reason is the phase's error."""
    bus, generator = Bus(), ScriptedGenerator([BUILT])
    bus.answer(GenerationRequested, lambda _: Deny("not today"))
    result: Any = workflow(tmp_path, generator, bus=bus).run()
    assert (result.status, generator.requests, events(result, SubagentSpawned)) == ("paused", [], [])
    assert [event.error for event in events(result, PhaseFailed)] == ["CallDeniedError: the call was denied: not today"]


@pytest.mark.parametrize("decision", [Modify({"prompt": "Say yes.", "max_tokens": 90}), Inject("Mind the style.")])
def test_a_changed_call_is_sent_and_recorded_as_it_was_changed(tmp_path: Path, decision: Any) -> None:
    """What is sent is what the gate's answers made of it, and so is what is held; the record says both and who."""
    bus, generator = Bus(), ScriptedGenerator([BUILT])
    bus.answer(GenerationRequested, lambda _: decision, name="stylist")
    made = workflow(tmp_path, generator, bus=bus)
    result: Any = made.run(run_id="top")
    (spawned,) = events(result, SubagentSpawned)
    (request,) = generator.requests
    told = json.loads(spawned.context.text)
    assert (told["prompt"], told["decisions"][0]["subscriber"]) == (request.prompt, "stylist")
    assert ("Say yes." in request.prompt) != ("Mind the style." in request.prompt)
    assert (request.max_tokens, spawned.reservation.input_tokens) == (
        spawned.reservation.output_tokens,
        -(-len(request.prompt) // 4),
    )
    assert (result.status, findings(made, "top")) == ("done", ())


def test_an_answer_to_a_changed_call_is_not_bought_again(tmp_path: Path) -> None:
    """Cut off behind the answer, the phase that is executed again gets it, whatever the gate made of the question."""

    class CutJournal(MemoryJournal):
        """Fails the first commit after a subagent's end."""

        answered = False

        async def append(self, batch: Batch) -> None:
            """Store a batch, or be gone once."""
            if self.answered:
                self.answered = False
                raise JournalError("the power is out", run_id=batch.run_id)
            await super().append(batch)
            self.answered = any(isinstance(record.event, SubagentFinished) for record in batch.records)

    bus, generator = Bus(), ScriptedGenerator([BUILT])
    bus.answer(GenerationRequested, lambda _: Inject("Mind the style."))
    made = workflow(tmp_path, generator, bus=bus, journal=CutJournal())
    with pytest.raises(WorkflowInterruptedError):
        made.run(run_id="top")
    result: Any = made.resume("top")
    assert (result.status, result.state["told"], len(generator.requests)) == ("done", "success", 1)


def test_a_person_is_asked_from_within_a_phase(tmp_path: Path) -> None:
    """The approver's no denies the call; one that raises has said no."""

    class Approver:
        """Fails to say anything."""

        async def approve(self, run_id: str, prompt: str) -> bool:
            """No answer."""
            raise OSError(f"{run_id}: nobody at {prompt}")

    bus, generator = Bus(), ScriptedGenerator([BUILT])
    bus.answer(GenerationRequested, lambda _: AskUser("Build?"))
    result: Any = workflow(tmp_path, generator, bus=bus, approver=Approver()).run()
    (failed,) = events(result, PhaseFailed)
    assert (generator.requests, failed.error) == ([], "CallDeniedError: the call was denied: not approved: Build?")


class Silent(ScriptedGenerator):
    """Never answers."""

    async def generate(self, request: Request) -> Generation:
        """Nothing."""
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


def test_a_call_that_a_phase_leaves_behind_is_charged_with_its_failure(tmp_path: Path) -> None:
    """The phase fails beside a subagent that is still out: its end comes before the failure, charged in full."""
    generator, kept = Silent([]), []

    async def phase(state: object, components: Components) -> PhaseOutcome:
        kept.append(asyncio.ensure_future(build(state, components)))
        while not generator.requests:  # noqa: ASYNC110 -- two turns of the loop
            await asyncio.sleep(0)
        raise ValueError("no")

    made = workflow(tmp_path, generator, phases={"build": phase})

    async def run() -> Any:
        result = await made.arun(run_id="top")
        kept[0].cancel()
        await asyncio.wait(kept)
        return result

    result: Any = asyncio.run(run())
    (spawned,), (lost,) = events(result, SubagentSpawned), events(result, SubagentFinished)
    (failed,) = events(result, PhaseFailed)
    assert (lost.status, lost.error) == ("error", "outcome unknown: the phase failed")
    assert (lost.charge.output_tokens, failed.charge) == (spawned.reservation.output_tokens, lost.charge)
    names = [record.event.name for record in result.records]
    assert names.index("subagent:finished") + 1 == names.index("phase:failed")
    assert findings(made, "top") == ()

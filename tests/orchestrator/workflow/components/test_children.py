"""Runs inside a phase: children of the workflow's run, one budget, one audit, whatever is cut off where."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator import Budget, EvalCase, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.agent.engine import Agent
from orchestrator.agent.ports import Reply
from orchestrator.audit import AuditReport, audit
from orchestrator.candidate import Candidate
from orchestrator.export import export_json
from orchestrator.importing import Export, parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.ports import Generation, Request
from orchestrator.redaction import Secrets
from orchestrator.testing.agents import ScriptedProvider
from orchestrator.workflow import (
    Components,
    Domain,
    Phase,
    PhaseOutcome,
    Policy,
    Workflow,
    WorkflowInterruptedError,
)
from orchestrator_events.budget import Usage
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ChildEnded, ChildStarted, ExecutionStart
from orchestrator_events.journal import Batch
from orchestrator_events.run import GenerationStarted
from orchestrator_events.workflow import PhaseFailed, PhaseFinished, SubagentFinished, SubagentSpawned

SPEC = MergedSpec(name="colours", intent="Name the colours.", evals=(EvalCase(name="red"), EvalCase(name="green")))
USED = Usage(input_tokens=40, output_tokens=9)
METERED = Budget(attempts=20, repeats=None, tokens=5_000, output_tokens=2_000, money_micro=1_000, seconds=600)


class CutJournal(MemoryJournal):
    """Takes so many batches and no more: what it then has is what a crash there would leave."""

    def __init__(self, left: int = 10_000) -> None:
        super().__init__()
        self.left = left

    async def append(self, batch: Batch) -> None:
        """Store a batch, or be gone."""
        if self.left == 0:
            raise JournalError("the power is out", run_id=batch.run_id)
        self.left -= 1
        await super().append(batch)


@attrs.define(eq=False)
class Painter:
    """Names one colour, and both from the second attempt on."""

    name: str = "painter"
    isolation: str = "none"
    max_prompt_characters: int | None = None
    requests: list[Request] = attrs.Factory(list[Request])
    fails: list[Exception] = attrs.Factory(list[Exception])

    async def generate(self, request: Request) -> Generation:
        """A candidate."""
        self.requests.append(request)
        if self.fails:
            raise self.fails.pop()
        text = "red" if request.attempt == 1 else "red green"
        return Generation(candidate=Candidate(text), usage=attrs.evolve(USED, money_micro=3))


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    return Verdict.of({case.name: case.name in submission.candidate.text for case in submission.spec.evals})


def painting(generator: Painter, budget: Budget | None = None) -> Callable[..., Any]:
    """A phase that is a conformance run."""

    async def paint(_: object, components: Components) -> PhaseOutcome:
        engine = Orchestrator(
            generator=generator,
            evaluator=judged,
            budget=budget or Budget(attempts=3),
            parameters={"max_tokens": 60},
        )
        report = await components.children.conform(SPEC, engine)
        return PhaseOutcome("done", {"workflow_id": "epic", "text": report.candidate.text if report.candidate else ""})

    return paint


def workflow(directory: Path, journal: MemoryJournal, phase: Callable[..., Any], **options: Any) -> Workflow:
    """A workflow of that one phase."""
    seconds = options.pop("phase_seconds", None)
    phases = (Phase(id="paint", seconds=seconds), Phase(id="done"))
    domain = Domain(name="demo", phases=phases, state_directory=directory)
    return Workflow(domain, phases={"paint": phase}, journal=journal, **options)


def events(journal: MemoryJournal, run_id: str, *kinds: type[Any]) -> list[Any]:
    """The events of these kinds in one run."""
    return [record.event for record in journal.streams[run_id].records if isinstance(record.event, kinds)]


def exported(journal: MemoryJournal, run_id: str = "top") -> Export:
    """A run and all inside it."""
    return parse_export(asyncio.run(export_json(journal, run_id)))


def audited(journal: MemoryJournal) -> AuditReport:
    """The audit of the tree."""
    return audit(exported(journal))


def messages(report: AuditReport) -> list[str]:
    """What was found."""
    return [str(finding) for finding in report.findings]


def test_a_run_inside_a_phase_is_a_child(tmp_path: Path) -> None:
    """Announced before, ended after with its head; what it was charged is the phase's; one audit covers it."""
    journal, generator = MemoryJournal(), Painter()
    result: Any = workflow(tmp_path, journal, painting(generator)).run(run_id="top")

    head = asyncio.run(journal.head("top.paint.1-1"))
    announced = next(each.sequence for each in result.records if isinstance(each.event, ChildStarted))
    start = events(journal, "top.paint.1-1", ExecutionStart)[0]
    assert (result.status, result.state["text"]) == ("done", "red green")
    assert (start.root_id, start.parent_id, start.parent_sequence) == ("top", "top", announced)
    assert events(journal, "top", ChildEnded) == [
        ChildEnded(child_id="top.paint.1-1", head=head.digest, count=head.count, status="passed")
    ]
    (phase,) = events(journal, "top", PhaseFinished)
    (told,) = events(journal, "top", SubagentFinished)
    assert (phase.charge, phase.charge.input_tokens, result.usage.output_tokens) == (told.charge, 80, 18)
    report = audited(journal)
    assert (messages(report), report.children) == ([], ("top.paint.1-1",))
    assert "tree" in report.checks


@pytest.mark.parametrize(
    "budget",
    [Budget(attempts=20, repeats=None), attrs.evolve(METERED, money_micro=None)],  # a lost call costs all money held
    ids=["unmetered", "metered"],
)
def test_a_workflow_cut_off_at_any_commit_goes_on_with_its_child(tmp_path: Path, budget: Budget) -> None:
    """Wherever the power goes out, the same end; a passed child is not repeated, no answer is bought again."""
    whole = CutJournal()
    expected: Any = workflow(tmp_path / "whole", whole, painting(Painter()), budget=budget).run(run_id="top")
    for cut in range(1, 10_000 - whole.left):
        journal, directory = CutJournal(cut), tmp_path / str(cut)
        with pytest.raises(WorkflowInterruptedError):
            workflow(directory, journal, painting(Painter()), budget=budget).run(run_id="top")
        journal.left = 10_000

        result: Any = workflow(directory, journal, painting(Painter()), budget=budget).resume("top")

        assert (result.status, result.state["text"]) == ("done", expected.state["text"]), cut
        assert messages(audited(journal)) == [], cut
        begun = len(events(journal, "top.paint.1-1", GenerationStarted))
        told = len(events(journal, "top", SubagentSpawned))
        assert (begun in (2, 3), told, sorted(journal.streams)) == (True, 1, ["top", "top.paint.1-1"]), cut


def test_a_child_that_passed_is_not_repeated_when_its_phase_is_retried(tmp_path: Path) -> None:
    """The phase failed after its child had passed: the next execution of the phase has the same child's result."""
    journal, generator, fails = MemoryJournal(), Painter(), [ValueError("disk full")]
    paint = painting(generator)

    async def phase(state: object, components: Components) -> PhaseOutcome:
        outcome: PhaseOutcome = await paint(state, components)
        if fails:
            raise fails.pop()
        return outcome

    result: Any = workflow(tmp_path, journal, phase, policy=Policy(phase_error="retry")).run(run_id="top")
    assert (result.status, len(generator.requests), messages(audited(journal))) == ("done", 2, [])
    failed, done = events(journal, "top", PhaseFailed, PhaseFinished)
    assert (failed.charge.input_tokens, done.charge.input_tokens) == (80, 0)


def test_a_child_that_could_not_go_on_is_gone_on_with(tmp_path: Path) -> None:
    """The generator was away: the phase fails, the child is left open, and the phase's retry resumes it."""
    journal, generator = MemoryJournal(), Painter(fails=[GeneratorUnavailableError("no key")])
    policy = Policy(phase_error="retry")
    made = workflow(tmp_path, journal, painting(generator), policy=policy, budget=METERED)
    result: Any = made.run(run_id="top")
    assert (result.status, messages(audited(journal))) == ("done", [])
    ends = events(journal, "top", ChildEnded)
    assert [end.status for end in ends][1:] == ["passed"]
    told = [(each.subagent_id, each.status) for each in events(journal, "top", SubagentFinished)]
    assert told == [("top.paint.1-1:1", "error"), ("top.paint.1-1:2", "success")]
    starts = events(journal, "top.paint.1-1", ExecutionStart)
    assert {(each.root_id, each.parent_id, each.parent_sequence) for each in starts} == {
        ("top", "top", starts[0].parent_sequence)
    }


def test_one_budget_covers_workflow_and_child(tmp_path: Path) -> None:
    """A child gets what the workflow has left; used up, the workflow waits, and more of it lets the child go on."""
    journal, generator = MemoryJournal(), Painter()
    small = Budget(attempts=20, repeats=None, tokens=150)
    result: Any = workflow(tmp_path, journal, painting(generator), budget=small).run(run_id="top")
    assert (result.status, result.decision.about) == ("paused", "budget")
    assert events(journal, "top.paint.1-1", ExecutionStart)[0].budget.tokens == 150
    assert (result.usage.input_tokens + result.usage.output_tokens <= 150, messages(audited(journal))) == (True, [])

    more = workflow(tmp_path, journal, painting(generator), budget=attrs.evolve(small, tokens=3_000))
    result = more.resume("top", "go on")
    assert (result.status, result.state["text"], len(generator.requests)) == ("done", "red green", 2)
    assert messages(audited(journal)) == []


def test_a_childs_own_limits_are_its_own_end(tmp_path: Path) -> None:
    """A child that used what it was given by the phase, and not what the workflow had, is exhausted, and final."""
    journal, generator = MemoryJournal(), Painter()
    phase = painting(generator, Budget(attempts=1))
    result: Any = workflow(tmp_path, journal, phase, budget=METERED).run(run_id="top")
    assert (result.status, result.state["text"], len(generator.requests)) == ("done", "red", 1)
    assert [each.status for each in events(journal, "top", SubagentFinished)] == ["failure"]
    assert messages(audited(journal)) == []


def test_an_agent_inside_a_phase(tmp_path: Path) -> None:
    """An agent's run is a child as well; a sync phase waits for it."""
    journal = MemoryJournal()
    provider = ScriptedProvider([Reply(blocks=({"type": "text", "text": "blue"},), usage=USED)])

    def phase(_: object, components: Components) -> PhaseOutcome:
        agent = Agent(providers={"scripted": provider}, model="m-1")
        report = components.wait(components.children.agent("Which colour?", agent, part="ask"))
        return PhaseOutcome("done", {"workflow_id": "epic", "text": report.answer})

    result: Any = workflow(tmp_path, journal, phase, budget=METERED).run(run_id="top")
    assert (result.status, result.state["text"], result.usage.input_tokens) == ("done", "blue", 40)
    assert (messages(audited(journal)), sorted(journal.streams)) == ([], ["top", "top.paint.ask"])


def test_a_child_that_its_phase_did_not_wait_for_buys_nothing_more(tmp_path: Path) -> None:
    """The phase's time is over: what the child cost is in the failure's charge, and its records end there."""
    journal = MemoryJournal()

    @attrs.define(eq=False)
    class Slow(Painter):
        """Never answers its second attempt."""

        async def generate(self, request: Request) -> Generation:
            """A candidate, or nothing for ever."""
            if request.attempt > 1:
                await asyncio.Event().wait()
            return await super().generate(request)

    made = workflow(tmp_path, journal, painting(Slow()), budget=METERED, phase_seconds=0.2)
    result: Any = made.run(run_id="top")
    assert (result.status, result.decision.about) == ("paused", "phase error")
    (failed,) = events(journal, "top", PhaseFailed)
    assert (failed.charge.input_tokens > 40, messages(audited(journal))) == (True, [])


def test_a_background_child_is_settled_with_its_phase(tmp_path: Path) -> None:
    """A phase that returns without waiting leaves nothing open: the child ends in order, its sum is charged."""
    journal, kept = MemoryJournal(), []

    @attrs.define(eq=False)
    class Stuck(Painter):
        """Never answers."""

        asked: asyncio.Event = attrs.Factory(asyncio.Event)

        async def generate(self, request: Request) -> Generation:
            """Nothing."""
            self.requests.append(request)
            self.asked.set()
            await asyncio.Event().wait()
            raise AssertionError("unreachable")

    generator = Stuck()

    async def phase(state: object, components: Components) -> PhaseOutcome:
        kept.append(asyncio.ensure_future(painting(generator)(state, components)))
        await generator.asked.wait()
        return PhaseOutcome("done", {"workflow_id": "epic"})

    async def run() -> Any:
        result = await workflow(tmp_path, journal, phase, budget=METERED).arun(run_id="top")
        kept[0].cancel()
        await asyncio.wait(kept)
        return result

    result: Any = asyncio.run(run())
    assert (result.status, [each.status for each in events(journal, "top", SubagentFinished)]) == ("done", ["error"])
    assert messages(audited(journal)) == []


def test_children_keep_the_workflows_secrets(tmp_path: Path) -> None:
    """No record of a child shows a secret of the workflow's; the budget's guard has the same one coat ever after."""
    journal, seen = MemoryJournal(), []

    async def phase(_: object, components: Components) -> PhaseOutcome:
        engine = Orchestrator(generator=Painter(fails=[ValueError("hunter2-hunter2")]), evaluator=judged)
        seen.append(made.bus.guard)
        for _number in range(2):
            await components.children.conform(SPEC, engine)
            seen.append(made.bus.guard)
        return PhaseOutcome("done", {"workflow_id": "epic"})

    made = workflow(tmp_path, journal, phase, secrets=Secrets({"password": "hunter2-hunter2"}))
    result: Any = made.run(run_id="top")
    assert (result.status, len(set(map(id, seen))), messages(audited(journal))) == ("done", 1, [])
    assert "hunter2" not in asyncio.run(export_json(journal, "top"))


def altered(export: Export, change: Callable[[dict[str, Any]], None]) -> AuditReport:
    """The audit of an export whose document was changed, every chain made to fit what it holds then."""
    document = json.loads(DOCUMENTS[export.run_id])
    change(document)
    return audit(parse_export(json.dumps(document)))


DOCUMENTS: dict[str, str] = {}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """A workflow with one child, done."""
    journal = MemoryJournal()
    workflow(tmp_path, journal, painting(Painter()), budget=METERED).run(run_id="top")
    DOCUMENTS["top"] = asyncio.run(export_json(journal, "top"))
    return parse_export(DOCUMENTS["top"])


def test_a_missing_child_is_said(export: Export) -> None:
    """An export without the child that its workflow announced is not clean."""
    found = messages(altered(export, lambda document: document.pop("children")))
    assert any("the child 'top.paint.1-1' is not in the export" in each for each in found), found


def test_a_child_that_was_cut_is_found(export: Export) -> None:
    """A child whose last records are gone, its head made to fit, does not end where its parent says."""

    def cut(document: dict[str, Any]) -> None:
        child = document["children"][0]
        del child["records"][-2:]
        child["head"] = {"digest": child["records"][-1]["digest"], "count": len(child["records"])}

    found = messages(altered(export, cut))
    assert any("the child 'top.paint.1-1' ended at" in each for each in found), found


def test_a_record_of_a_child_that_was_changed_is_found(export: Export) -> None:
    """Another charge in a record of the child breaks its chain."""

    def change(document: dict[str, Any]) -> None:
        for record in document["children"][0]["records"]:
            if record["body"]["event"].get("charge"):
                record["body"]["event"]["charge"]["input_tokens"] = 1

    assert any("top.paint.1-1" in each for each in messages(altered(export, change)))


@pytest.mark.parametrize(
    ("kind", "fields", "said"),
    [
        (SubagentFinished, {"charge": {"input_tokens": 1}}, "was charged 80 input tokens, its parent 1"),
        (SubagentSpawned, {"reservation": {"input_tokens": 60, "output_tokens": 40}}, "100 were set aside"),
        (SubagentSpawned, {"reservation": {"output_tokens": 6_000}}, "2000 are left"),
        (ChildEnded, {"status": "exhausted"}, "ended in 'passed', not 'exhausted'"),
    ],
    ids=["charge", "allotment", "hold", "status"],
)
def test_what_a_workflow_says_of_its_child_is_checked(
    tmp_path: Path, kind: type[Any], fields: dict[str, Any], said: str
) -> None:
    """A workflow that says another sum, hold or end of its child than is so is found, though its chain fits."""
    journal, forged = MemoryJournal(), MemoryJournal()
    workflow(tmp_path, journal, painting(Painter()), budget=METERED).run(run_id="top")
    for run_id, stream in journal.streams.items():
        records = tuple(
            record._replace(event=with_fields(record.event, fields)) if isinstance(record.event, kind) else record
            for record in stream.records
        )
        asyncio.run(forged.append(Batch(run_id, records)))
    found = messages(audited(forged))
    assert any(said in each for each in found), found


def with_fields(event: Any, fields: dict[str, Any]) -> Any:
    """An event with other fields, or with parts of them."""
    return attrs.evolve(
        event,
        **{
            name: attrs.evolve(getattr(event, name), **value) if isinstance(value, dict) else value
            for name, value in fields.items()
        },
    )

"""The plan orchestrator: one budget, models that fail, executors, approvals, amendments, cancellation, resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.agent.ports import ToolCall
from orchestrator.audit import audit
from orchestrator.candidate import Candidate
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.difference import AmendmentError
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.models import AgentModel, GeneratorModel
from orchestrator.plan.outcome import (
    PlanBlockedResult,
    PlanCompletedResult,
    PlanExhaustedResult,
    PlanInterruptedError,
)
from orchestrator.plan.plan import PlanError, read_plan
from orchestrator.plan.readiness import PlanNotReadyError
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Policy, Treatment
from orchestrator.ports import Generation, Request
from orchestrator.process import CONTAINMENT
from orchestrator.testing.agents import ScriptedProvider
from orchestrator_events.budget import Budget, Usage
from orchestrator_events.decision import Deny
from orchestrator_events.plan import StepRequested, WorkFinished

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
APPROVED = json.dumps({"status": "approved", "checklist": CHECKLIST})
POLICY = Policy(default=Treatment(primary="writer", secondary="second", reviewer="reviewer"))
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step of low risk."""
    base = {"id": step_id, "role": "Writer", "task": f"write {step_id}", "risk_level": "low"}
    return {**base, "acceptance_criteria": ["it is written"], "depends_on": list(after), **fields}


def plan_of(*steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A plan of these steps."""
    return {"plan_id": "p", "goal": "write", "steps": list(steps), **fields}


def made(place: Path, plan: dict[str, Any], writer: Any = lambda _: "text", **options: Any) -> PlanOrchestrator:
    """An orchestrator with a writer, a second one, and a reviewer who approves."""
    models = {"writer": writer, "second": lambda _: "second", "reviewer": lambda _: APPROVED}
    models["StrongReasoningModel"] = writer
    settings: dict[str, Any] = {
        "models": {**models, **options.pop("models", {})},
        "policy": POLICY,
        "studio": ContextBus(root=place / "studio"),
        "has_release_manager": False,
        **options,
    }
    return PlanOrchestrator(read_plan(plan, "plan.json"), **settings)


def locked(orchestrator: PlanOrchestrator) -> PlanOrchestrator:
    """The same with its plan reviewed and locked."""
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    return orchestrator


def findings(orchestrator: PlanOrchestrator) -> list[str]:
    """What an audit of the plan finds."""
    text = asyncio.run(export_json(orchestrator.journal, orchestrator.run_id))
    return [str(finding) for finding in audit(parse_export(text)).findings]


def finished(orchestrator: PlanOrchestrator) -> list[WorkFinished]:
    """All work of models that is over."""

    async def read() -> list[WorkFinished]:
        journal = orchestrator.journal
        return [
            entry.record.event
            for run_id in await journal.run_ids()
            async for entry in journal.read(run_id)
            if isinstance(entry.record.event, WorkFinished)
        ]

    return asyncio.run(read())


def used(text: str, tokens: int) -> Generation:
    """An answer of so many tokens to a prompt of two hundred."""
    return Generation(candidate=Candidate(text), usage=Usage(input_tokens=200, output_tokens=tokens))


def test_independent_steps_run_side_by_side_up_to_a_limit(tmp_path: Path) -> None:
    """Steps that depend on nothing run at once, but never more than the limit says."""
    at_work, most = 0, 0

    async def writer(_: Request) -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        for _turn in range(20):
            await asyncio.sleep(0)
        at_work -= 1
        return "text"

    steps = [step(f"s{number}") for number in range(6)]
    result = locked(made(tmp_path, plan_of(*steps), writer, most_at_once=3)).run()
    assert (result.status, most) == ("completed", 3)


def test_one_budget_over_the_whole_plan(tmp_path: Path) -> None:
    """Steps side by side never spend more than the plan's tokens together; with more, the plan goes on to its end."""
    steps = [step(f"s{number}") for number in range(4)]
    writer = GeneratorModel(lambda _: used("text", 900), parameters={"max_tokens": 1_000})
    reviewer = GeneratorModel(lambda _: used(APPROVED, 500), parameters={"max_tokens": 1_000})
    journal = MemoryJournal()
    models = {"writer": writer, "reviewer": reviewer}
    small = made(tmp_path, plan_of(*steps), models=models, journal=journal, budget=Budget(tokens=6_000, attempts=None))
    result = locked(small).run()
    assert isinstance(result, PlanExhaustedResult)
    assert (result.limit, result.usage.input_tokens + result.usage.output_tokens <= 6_000) == ("tokens", True)
    wide = made(tmp_path, plan_of(*steps), models=models, journal=journal, budget=Budget(tokens=90_000, attempts=None))
    again = wide.resume()
    assert isinstance(again, PlanCompletedResult)
    assert (again.usage.input_tokens + again.usage.output_tokens, findings(wide)) == (4 * (1_100 + 700), [])


def test_the_secondary_takes_the_place_of_a_model_that_cannot_be_had(tmp_path: Path) -> None:
    """That is no failure of the implementer."""

    def writer(_: Request) -> str:
        raise GeneratorUnavailableError("gone")

    orchestrator = locked(made(tmp_path, plan_of(step("one")), writer))
    result = orchestrator.run()
    works = [(work.purpose, work.output is not None) for work in finished(orchestrator)]
    assert (result.status, result.by_id["one"].failures) == ("completed", 0)
    assert works == [("primary", False), ("secondary", True), ("review", True)]
    assert findings(orchestrator) == []


@pytest.mark.parametrize("secondary", ["", "nobody maps it"])
def test_a_plan_waits_for_a_model_that_cannot_be_had(tmp_path: Path, secondary: str) -> None:
    """Without a secondary the plan is left open, and goes on once the model is there again."""
    is_there = False

    def writer(_: Request) -> str:
        if not is_there:
            raise GeneratorUnavailableError("gone")
        return "text"

    policy = Policy(default=Treatment(primary="writer", secondary=secondary, reviewer="reviewer"))
    orchestrator = locked(made(tmp_path, plan_of(step("one")), writer, policy=policy))
    with pytest.raises(PlanInterruptedError, match="gone") as error:
        orchestrator.run()
    is_there = True
    assert (error.value.report.state, orchestrator.resume().status) == ("executing", "completed")
    assert findings(orchestrator) == []


def test_a_generation_that_fails_is_a_failure_of_the_implementer(tmp_path: Path) -> None:
    """It is fed back like any other, and counts in the three."""
    prompts: list[str] = []

    def writer(request: Request) -> str:
        prompts.append(request.prompt)
        if len(prompts) == 1:
            raise GenerationError("too long")
        return "text"

    result = locked(made(tmp_path, plan_of(step("one")), writer)).run()
    assert (result.status, result.by_id["one"].failures, "too long" in prompts[1]) == ("completed", 1, True)


def test_an_answer_that_is_no_review_approves_nothing(tmp_path: Path) -> None:
    """The reviewer is asked again with what is wrong; after three such answers the step is blocked."""
    prompts: list[str] = []

    def reviewer(request: Request) -> str:
        prompts.append(request.prompt)
        return "Looks good to me!"

    result = locked(made(tmp_path, plan_of(step("one")), models={"reviewer": reviewer})).run()
    assert isinstance(result, PlanBlockedResult)
    assert (len(prompts), "was no review" in prompts[1], result.by_id["one"].failures) == (3, True, 0)


def test_a_step_executed_by_an_agent(tmp_path: Path) -> None:
    """An agent works with tools in a workspace that holds the inputs; the files it is to make are the output."""
    read = ToolCall(id="1", tool="read_file", arguments={"path": "a.txt"})
    write = ToolCall(id="2", tool="write_file", arguments={"path": "b.txt", "content": "made"})
    provider = ScriptedProvider([read, write, "done"])
    steps = (
        step("a", outputs=["a.txt"]),
        step("b", "a", model="agent", inputs=["a.txt"], outputs=["b.txt"], executor="agent"),
    )
    orchestrator = made(tmp_path, plan_of(*steps), models={"agent": AgentModel(provider)})
    result = locked(orchestrator).run()
    assert (result.status, findings(orchestrator)) == ("completed", [])
    shown = [message["content"] for message in provider.requests[1].messages if message["role"] == "tool"]
    assert ["text" in str(text) for text in shown] == [True]
    place = tmp_path / "studio/WORK/p.b.primary-1"
    assert {path.name: path.read_text() for path in place.iterdir()} == {"a.txt": "text", "b.txt": "made"}
    assert (tmp_path / "studio/RUNS/p/step_b_artifacts/1/b.txt").read_text() == "made"


def test_a_step_executed_as_a_conformance_run(tmp_path: Path) -> None:
    """A suite of the host's judges the candidates until one passes; it is the step's output."""
    answers = iter(["bad", "good"])
    writer = lambda _: next(answers)  # noqa: E731 -- a generator in a word
    suite = lambda submission: {"is good": submission.candidate.text == "good"}  # noqa: E731 -- as above
    orchestrator = made(tmp_path, plan_of(step("one", executor="conformance")), writer, suites={"one": suite})
    result = locked(orchestrator).run()
    assert (result.status, findings(orchestrator)) == ("completed", [])
    assert finished(orchestrator)[0].output is not None
    assert (tmp_path / "studio/RUNS/p/step_one_output.md").read_text() == "good"


def test_everything_that_is_missing_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    """Models that nobody mapped, gates that no check opens, suites that are not there: all at once."""
    steps = (step("one", test_plan=["try"]), step("two", executor="conformance"), step("three", model="nobody"))
    orchestrator = locked(made(tmp_path, plan_of(*steps)))
    with pytest.raises(PlanNotReadyError) as error:
        orchestrator.run()
    told = "\n".join(error.value.faults)
    assert all(text in told for text in ("'nobody'", "needs qa evidence", "without an eval suite"))
    assert finished(orchestrator) == []


def test_what_only_python_can_give_is_said(tmp_path: Path) -> None:
    """A step for an agent, whose model is a plain one, is told what it takes."""
    orchestrator = made(tmp_path, plan_of(step("one", executor="agent")))
    remedy = "map it to an AgentModel, which takes Python: no configuration file describes one"
    assert orchestrator.check() == (
        f"step one is to be executed as agent, which the model 'writer' cannot do: {remedy}",
    )


def test_a_file_claims_no_lifecycle_that_the_journal_does_not_know(tmp_path: Path) -> None:
    """A file may repeat what is recorded, even late; one that is ahead of it, or of an older plan, is refused."""
    data = plan_of(step("one"))
    journal = MemoryJournal()

    def saying(lifecycle: str, **fields: Any) -> PlanOrchestrator:
        return made(tmp_path, {**data, **fields, "lifecycle": lifecycle}, journal=journal)

    def refused(lifecycle: str, act: Callable[[PlanOrchestrator], object], **fields: Any) -> str:
        with pytest.raises(PlanError) as error:
            act(saying(lifecycle, **fields))
        (fault,) = error.value.faults
        return str(fault).partition(", which the journal does not know of, ")[2].partition(":")[0]

    review: Callable[[PlanOrchestrator], object] = lambda it: it.review(YES, "Ada")  # noqa: E731 -- as a value
    assert (
        refused("completed", review)
        == refused("locked", lambda it: it.run())
        == "nothing is recorded of the plan there"
    )
    assert asyncio.run(journal.run_ids()) == ()
    review(saying("draft"))
    assert refused("locked", lambda it: it.lock()) == "the plan is reviewed there"
    saying("reviewed").lock()
    saying("locked").amend(read_plan({**data, "goal": "write well", "lifecycle": "locked"}, "plan.json"), "better")
    assert refused("locked", review, goal="write well") == "the plan is amended there"
    review(saying("amended", goal="write well"))
    saying("draft", goal="write well").lock()
    assert saying("reviewed", goal="write well").run().status == "completed"


def test_a_completed_plan_is_not_ready_to_be_executed(tmp_path: Path) -> None:
    """A check without a journal takes a plan that says it is completed at its word."""
    orchestrator = made(tmp_path, plan_of(step("one"), lifecycle="completed"))
    assert orchestrator.check() == (
        "the plan says that it is completed, so nothing is left to execute: leave its lifecycle out to do it anew",
    )


def test_a_gate_that_denies_blocks_the_step(tmp_path: Path) -> None:
    """Subscribers are asked before a step is executed."""
    orchestrator = made(tmp_path, plan_of(step("one")))
    orchestrator.bus.answer(StepRequested, lambda _: Deny("not today"))
    result = locked(orchestrator).run()
    assert isinstance(result, PlanBlockedResult)
    assert result.blocked == {"one": "denied: not today"}


class Person:
    """Answers as told."""

    def __init__(self, *answers: bool) -> None:
        self.answers = iter(answers)

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """The next answer."""
        return next(self.answers)


@pytest.mark.parametrize(("answer", "status"), [(True, "completed"), (False, "blocked")])
def test_a_person_approves(tmp_path: Path, answer: bool, status: str) -> None:
    """Where the policy requires a person's approval, nothing is completed without it."""
    policy = Policy(
        default=Treatment(primary="writer", reviewer="reviewer", reviews=frozenset({"manual_approval"}))  # type: ignore[arg-type]
    )
    orchestrator = locked(made(tmp_path, plan_of(step("one")), policy=policy, approver=Person(answer)))
    assert (orchestrator.run().status, findings(orchestrator)) == (status, [])


def blocked_then_fine() -> Callable[[Request], str]:
    """A reviewer who blocks until the task is another."""

    def reviewer(request: Request) -> str:
        if "write less" in request.prompt:
            return APPROVED
        return json.dumps({"status": "blocked", "checklist": CHECKLIST, "diff_risk_notes": ["too much"]})

    return reviewer


def test_amended_plans_go_on(tmp_path: Path) -> None:
    """Completed steps stay; the blocked one begins anew; a change of what is completed is refused."""
    journal = MemoryJournal()
    steps = (step("one"), step("two", "one"))
    calls: list[str] = []

    def writer(request: Request) -> str:
        calls.append(request.run_id)
        return "text"

    def reviewer(request: Request) -> str:
        return APPROVED if request.run_id.startswith("p.one") else blocked_then_fine()(request)

    orchestrator = made(tmp_path, plan_of(*steps), writer, models={"reviewer": reviewer}, journal=journal)
    assert isinstance(locked(orchestrator).run(), PlanBlockedResult)
    with pytest.raises(AmendmentError, match="completed"):
        orchestrator.amend(read_plan(plan_of(step("one", task="other"), steps[1]), "plan"), "because")
    orchestrator.amend(read_plan(plan_of(steps[0], step("two", "one", task="write less")), "plan"), "too much")
    assert orchestrator.status().state == "amended"
    assert locked(orchestrator).run().status == "completed"
    assert (calls, findings(orchestrator)) == (["p.one.primary-1", "p.two.primary-1", "p.two.primary-2"], [])


def test_cancelled_in_order_and_resumed(tmp_path: Path) -> None:
    """Cancelling the task ends every step under way with its end recorded; a resume goes on from there."""
    journal, waiting = MemoryJournal(), asyncio.Event()

    async def hang(_: Request) -> str:
        waiting.set()
        if not is_awake:
            await asyncio.Event().wait()
        return "text"

    is_awake = False
    steps = (step("one"), step("two"))
    hanging = locked(made(tmp_path, plan_of(*steps), hang, journal=journal))

    async def cancelled() -> None:
        task = asyncio.create_task(hanging.arun())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert (hanging.status().state, findings(hanging)) == ("executing", [])
    assert filed(tmp_path)[-1] == "execution:end"
    is_awake = True
    assert (hanging.resume().status, findings(hanging)) == ("completed", [])


def test_a_model_reviews_the_plan(tmp_path: Path) -> None:
    """Its answer is checked like any review's, and its run is part of the plan's audit."""
    orchestrator = made(tmp_path, plan_of(step("one")), plan_reviewer="reviewer")
    assert orchestrator.review().state == "reviewed"
    orchestrator.lock()
    assert (orchestrator.run().status, findings(orchestrator)) == ("completed", [])


def test_a_lost_studio_is_laid_out_again(tmp_path: Path) -> None:
    """What the journal tells is laid into an empty studio when the plan goes on."""
    orchestrator = made(tmp_path, plan_of(step("one", outputs=["a.txt"])), models={"reviewer": blocked_then_fine()})
    locked(orchestrator).run()
    before = (tmp_path / "studio/RUNS/p/step_one_output.md").read_text()
    (tmp_path / "studio").rename(tmp_path / "lost")
    orchestrator.resume()
    assert (tmp_path / "studio/RUNS/p/step_one_output.md").read_text() == before


def test_a_suite_cannot_be_replaced_by_what_it_judges(tmp_path: Path) -> None:
    """A file of the step with the name of the suite's own is left out."""
    check = CommandCheck("qa", "{python} test.py", suite={"test.py": "raise SystemExit('red')"}, launcher=CONTAINMENT)
    steps = plan_of(step("one", test_plan=["run"], outputs=["test.py"]))
    result = locked(made(tmp_path, steps, lambda _: "print('green')", checks=[check])).run()
    assert (result.status, result.by_id["one"].state) == ("blocked", "failed")


def test_a_completed_plan_has_its_studio_laid_out(tmp_path: Path) -> None:
    """Whoever kills a plan after its last record leaves files behind it: a resume does nothing but write them."""
    orchestrator = locked(made(tmp_path, plan_of(step("one", outputs=["a.txt"]))))
    completed = orchestrator.run()
    files = {path.name: path.read_bytes() for path in (tmp_path / "studio/RUNS/p").iterdir() if path.is_file()}
    (tmp_path / "studio").rename(tmp_path / "lost")
    again = orchestrator.resume()
    assert (again.status, again.journal_head) == ("completed", completed.journal_head)
    for name, data in files.items():
        assert (tmp_path / "studio/RUNS/p" / name).read_bytes() == data, name
    assert json.loads((tmp_path / "studio/STATE/state.json").read_text())["lifecycle"] == "completed"


def filed(place: Path) -> list[str]:
    """What the export in the run's folder says of the plan, in short; an audit finds that it runs, and nothing else."""
    export = parse_export((place / "studio/RUNS/p/journal.json").read_text())
    found = [str(finding) for finding in audit(export).findings]
    assert [each for each in found if "it runs, was cut off" not in each] == []
    names = [json.loads(link.body)["name"] for link in export.links]
    return [name for name in names if name in ("plan:started", "step:settled", "execution:end")]


def test_the_run_folder_tells_of_every_settled_step(tmp_path: Path) -> None:
    """'Artifacts written to /studio for audit and replay': whoever kills a plan leaves what is there by then.

    It is as of the step that was settled last, and of the end of an invocation that was interrupted or cancelled.
    """
    seen: dict[str, list[str]] = {}

    async def writer(request: Request) -> str:
        seen[request.run_id] = filed(tmp_path)
        if ".three." in request.run_id:
            raise GeneratorUnavailableError("gone")
        return "text"

    steps = (step("one"), step("two", "one"), step("three", "two"))
    orchestrator = locked(made(tmp_path, plan_of(*steps), writer, models={"second": writer}))
    with pytest.raises(PlanInterruptedError):
        orchestrator.run()
    brief = ["execution:end"] * 2  # of the review and of the lock
    begun = [*brief, "plan:started"]
    assert seen == {
        "p.one.primary-1": begun,
        "p.two.primary-1": [*begun, "step:settled"],
        "p.three.primary-1": [*begun, "step:settled", "step:settled"],
        "p.three.secondary-1": [*begun, "step:settled", "step:settled"],
    }
    assert filed(tmp_path) == [*begun, "step:settled", "step:settled", "execution:end"]

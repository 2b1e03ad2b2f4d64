"""The course of a plan: when the release manager works, what a second pass is told, who executes, who pays."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.agent.ports import Reply, ToolCall
from orchestrator.audit import audit
from orchestrator.candidate import Candidate
from orchestrator.charges import charged_by
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.nesting import load_child
from orchestrator.plan.checks import CommandCheck, Examination
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.difference import AmendmentError
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.gates import Evidence
from orchestrator.plan.models import AgentModel, GeneratorModel
from orchestrator.plan.outcome import PlanCompletedResult, PlanInterruptedError
from orchestrator.plan.plan import Plan, read_plan
from orchestrator.plan.readiness import PlanNotReadyError
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Mode, Policy, ReviewKind, Treatment
from orchestrator.ports import Generation, Request
from orchestrator.process import CONTAINMENT
from orchestrator.testing.agents import ScriptedProvider
from orchestrator_events.budget import Budget, Usage
from orchestrator_events.event import Event
from orchestrator_events.plan import (
    ArtifactPublished,
    FollowUpAdded,
    StepCompared,
    StepStarted,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.record import Record

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
POST_PASS = Treatment(primary="writer", secondary="second", reviewer="reviewer", mode=Mode.POST_PASS)
Kind = TypeVar("Kind", bound=Event)
Answer = Callable[[str, str], str]
"""From the id of a run inside the plan, without the plan's, and the prompt to the answer of the model."""


def decided(status: str, **fields: Any) -> str:
    """A reviewer's answer."""
    return json.dumps({"status": status, "checklist": CHECKLIST, **fields})


def plan_of(*steps: dict[str, Any], **fields: Any) -> Plan:
    """A plan of steps of low risk."""
    base = {"role": "Writer", "risk_level": "low", "acceptance_criteria": ["it is written"], "rollback_plan": "delete"}
    told = [{**base, "task": f"write {each['id']}", **each} for each in steps]
    return read_plan({"plan_id": "p", "goal": "write", "steps": told, **fields}, "plan.json")


@attrs.frozen
class Course:
    """A plan, its orchestrator, and what was recorded of it."""

    orchestrator: PlanOrchestrator
    journal: MemoryJournal

    def lock(self) -> Course:
        """Review the plan and lock it."""
        self.orchestrator.review(YES, "Ada")
        self.orchestrator.lock()
        return self

    @property
    def records(self) -> list[Record]:
        """Everything recorded, run by run."""
        return [record for stream in self.journal.streams.values() for record in stream.records]

    def events(self, kind: type[Kind], run_id: str = "") -> list[Kind]:
        """The events of a kind, in one run or in all."""
        found = [record for record in self.records if run_id in ("", record.run_id)]
        return [record.event for record in found if isinstance(record.event, kind)]

    def prompt(self, run_id: str) -> str:
        """What the model of a run inside the plan was asked."""
        (found,) = (event.prompt.text for event in self.events(WorkStarted) if event.child_id == run_id)
        return found or ""

    def findings(self) -> list[str]:
        """What an audit finds."""
        text = asyncio.run(export_json(self.journal, "p"))
        return [str(finding) for finding in audit(parse_export(text)).findings]


def course(place: Path, plan: Plan, answer: Answer, **options: Any) -> Course:
    """A plan whose models answer by one function; what it gives nothing for is approved, or written."""

    def call(request: Request) -> str:
        run_id = request.run_id.removeprefix("p.")
        return answer(run_id, request.prompt) or (decided("approved") if ".review-" in run_id else f"text of {run_id}")

    journal = MemoryJournal()
    treatment = Treatment(primary="writer", secondary="second", reviewer="reviewer")
    given: dict[str, Any] = {"has_release_manager": False, "policy": Policy(default=treatment), **options}
    names = ("writer", "second", "reviewer", "StrongReasoningModel")
    models = {**dict.fromkeys(names, call), **given.pop("models", {})}
    studio = ContextBus(root=place / "studio")
    return Course(PlanOrchestrator(plan, models=models, studio=studio, journal=journal, **given), journal)


def test_the_release_manager_waits_for_what_an_amendment_adds(tmp_path: Path) -> None:
    """Blocked, he begins anew once all steps of the amended plan are completed, and his notes name the new one."""

    def answer(run_id: str, prompt: str) -> str:
        if run_id == "release-manager.review-1" and "two" not in prompt:
            return decided("blocked", diff_risk_notes=["nothing says how to undo it"])
        return ""

    plan = course(tmp_path, plan_of({"id": "one"}), answer, has_release_manager=True).lock()
    assert plan.orchestrator.run().status == "blocked"
    plan.orchestrator.amend(plan_of({"id": "one"}, {"id": "two"}), "a step to undo it")
    assert plan.lock().orchestrator.run().status == "completed"
    began = [(event.step, event.number) for event in heard(plan, StepStarted)]
    assert began == [("one", 1), ("release-manager", 1), ("two", 1), ("release-manager", 2)]
    prompts = [plan.prompt(f"p.release-manager.primary-{number}") for number in (1, 2)]
    assert ["two: `write two`" in prompt for prompt in prompts] == [False, True]
    assert [event.followup for event in plan.events(FollowUpAdded)] == ["release-manager"] * 2
    assert plan.findings() == []


def heard(plan: Course, kind: type[Kind]) -> list[Kind]:
    """The events of a kind in all runs, in the order in which they happened."""
    found = sorted(plan.records, key=lambda record: record.at)
    return [record.event for record in found if isinstance(record.event, kind)]


def test_a_release_manager_who_was_cut_off_goes_on(tmp_path: Path) -> None:
    """What he was shown holds: it is not published again, and meanwhile no amendment may make it stale."""
    is_there = False

    def answer(run_id: str, _: str) -> str:
        if run_id.startswith("release-manager.primary") and not is_there:
            raise GeneratorUnavailableError("gone")
        return ""

    policy = Policy(default=Treatment(primary="writer", reviewer="reviewer"))
    plan = course(tmp_path, plan_of({"id": "one"}), answer, policy=policy, has_release_manager=True).lock()
    with pytest.raises(PlanInterruptedError, match="gone"):
        plan.orchestrator.run()
    with pytest.raises(AmendmentError, match="step release-manager is under way"):
        plan.orchestrator.amend(plan_of({"id": "one"}, {"id": "two"}), "more")
    before = len(plan.events(ArtifactPublished, "p")), len(plan.events(FollowUpAdded))
    is_there = True
    assert plan.orchestrator.resume().status == "completed"
    at_the_end = 3  # the three documents as they are when the plan is completed
    after = len(plan.events(ArtifactPublished, "p")) - at_the_end, len(plan.events(FollowUpAdded))
    assert (before, after, plan.findings()) == ((3, 1), (3, 1), [])


def test_the_second_pass_of_a_fix_is_told_what_to_correct(tmp_path: Path) -> None:
    """In post-pass mode both passes of a fix get the reviewer's fixes and the earlier output."""

    def answer(run_id: str, _: str) -> str:
        is_first = run_id == "one.review-1"
        return decided("changes_requested", required_fixes=["count from zero"]) if is_first else ""

    plan = course(tmp_path, plan_of({"id": "one"}), answer, policy=Policy(default=POST_PASS)).lock()
    assert plan.orchestrator.run().status == "completed"
    said = ("required fix: count from zero", "text of one.post-pass-1")
    told = {
        name: [text in plan.prompt(f"p.one.{name}") for text in (*said, "text of one.primary-2")]
        for name in ("primary-1", "post-pass-1", "primary-2", "post-pass-2")
    }
    assert told == {
        "primary-1": [False, False, False],
        "post-pass-1": [False, False, False],
        "primary-2": [True, True, False],
        "post-pass-2": [True, True, True],
    }


def test_an_input_that_vanishes_between_two_passes_blocks_the_step(tmp_path: Path) -> None:
    """It is said which; what the plan says is to be mended, and nothing of the plan has broken."""
    page = tmp_path / "studio/CONTEXT/style.md"
    page.parent.mkdir(parents=True)
    page.write_text("Be brief.")

    def answer(run_id: str, _: str) -> str:
        if run_id == "one.primary-1":
            page.unlink()
        return ""

    steps = plan_of({"id": "one", "inputs": ["CONTEXT/style.md"]}, context_requirements=["CONTEXT/style.md"])
    plan = course(tmp_path, steps, answer, policy=Policy(default=POST_PASS)).lock()
    result = plan.orchestrator.run()
    assert (result.status, "CONTEXT/style.md: no such file" in result.by_id["one"].reason) == ("blocked", True)
    assert plan.findings() == []


@pytest.mark.parametrize(
    ("first", "said"),
    [("raise SystemExit('red')", "qa: closed"), ("```\n", "The last attempt gave no usable output")],
)
def test_the_second_pass_is_told_whatever_failed(tmp_path: Path, first: str, said: str) -> None:
    """Feedback is what made the last execution fail, a review or not: captured output, or why there was no output."""
    answers = {"one.post-pass-1": first, "one.post-pass-2": "print('ok')"}
    plan = course(
        tmp_path,
        plan_of({"id": "one", "outputs": ["a.py"], "test_plan": ["run it"]}),
        lambda run_id, _: answers.get(run_id, ""),
        policy=Policy(default=POST_PASS),
        checks=[CommandCheck("qa", "{python} a.py", launcher=CONTAINMENT)],
    ).lock()
    assert plan.orchestrator.run().status == "completed"
    assert [said in plan.prompt(f"p.one.post-pass-{number}") for number in (1, 2)] == [False, True]


TESTING = """import sys
print("test_sign_in: expected 'ok', saw", repr(open("a.py").read()), "-" * 50_000, "2 failed")
sys.exit("ok" not in open("a.py").read())
"""


def test_what_the_gates_captured_is_shown_to_all_who_need_it(tmp_path: Path) -> None:
    """Fix, refactor, second pass and reviewer get beginning and end of it, bounded; and the notes of QA agents."""
    answers = {"one.primary-3": "ok", **{f"one.qa-{number}": f"note {number}" for number in (1, 2, 3)}}
    plan = course(
        tmp_path,
        plan_of({"id": "one", "outputs": ["a.py"], "test_plan": ["run it"]}),
        lambda run_id, _: answers.get(run_id, "bad" if "-pass" in run_id else ""),
        policy=Policy(default=POST_PASS),
        checks=[CommandCheck("qa", "{python} test.py", suite={"test.py": TESTING}, launcher=CONTAINMENT)],
        examiners={"qa": "reviewer"},
    ).lock()
    assert (plan.orchestrator.run().status, plan.findings()) == ("completed", [])
    prompts = ("primary-1", "primary-2", "post-pass-2", "primary-3", "review-3")
    told = {}
    for name in prompts:
        prompt = plan.prompt(f"p.one.{name}")
        log = prompt.partition("<<< captured ")[2].partition(" >>>")[0]
        seen = next((text for text in ("bad", "ok") if f"saw '{text}'" in log), "")
        told[name] = (
            seen,
            "2 failed" in log,
            0 < len(log) < 13_000,
            [str(n) for n in (1, 2, 3) if f"note {n}" in prompt],
        )
    assert told == {
        "primary-1": ("", False, False, []),
        "primary-2": ("bad", True, True, ["1"]),
        "post-pass-2": ("bad", True, True, ["1"]),
        "primary-3": ("bad", True, True, ["2"]),
        "review-3": ("ok", True, True, ["3"]),
    }


def test_a_contract_that_breaks_its_format_says_where(tmp_path: Path) -> None:
    """Which key of an OpenAPI document is missing reaches whoever mends it."""
    valid = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}
    answers = {"one.primary-1": json.dumps({**valid, "info": {"title": "t"}}), "one.primary-2": json.dumps(valid)}
    steps = plan_of({"id": "one", "outputs": ["CONTRACTS/api.json"]})
    plan = course(tmp_path, steps, lambda run_id, _: answers.get(run_id, "")).lock()
    assert plan.orchestrator.run().status == "completed"
    log = plan.prompt("p.one.primary-2").partition("<<< captured ")[2].partition(" >>>")[0]
    assert ("$.info" in log, "version" in log) == (True, True)


def test_a_contract_of_no_known_kind_goes_back_to_its_implementer(tmp_path: Path) -> None:
    """Data that neither `openapi` nor `$schema` names opens no gate, and whoever made it is told what is missing."""
    schema = '{"$schema": "https://json-schema.org/draft/2020-12/schema"}'
    answers = {"one.primary-1": '{"user": {}}', "one.primary-2": schema}
    steps = plan_of({"id": "one", "outputs": ["CONTRACTS/user.json"]})
    plan = course(tmp_path, steps, lambda run_id, _: answers.get(run_id, "")).lock()
    assert (plan.orchestrator.run().status, plan.findings()) == ("completed", [])
    log = plan.prompt("p.one.primary-2").partition("<<< captured ")[2].partition(" >>>")[0]
    assert "it has neither `openapi` nor `$schema`, so it is data of no known kind" in log


def test_data_beside_a_valid_contract_closes_no_gate(tmp_path: Path) -> None:
    """What can be validated is: a file that cannot does not count against one that is valid."""
    files = {
        "CONTRACTS/a.json": '{"$schema": "https://json-schema.org/draft/2020-12/schema"}',
        "CONTRACTS/b.json": "{}",
    }
    steps = plan_of({"id": "one", "outputs": list(files)})
    writer = GeneratorModel(lambda _: Candidate(files=files))
    plan = course(tmp_path, steps, lambda *_: "", models={"writer": writer}).lock()
    assert (plan.orchestrator.run().status, plan.findings()) == ("completed", [])


def test_a_contract_that_nothing_validates_is_told_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind that is not known, or a library that is not there, needs a check of the host's own."""
    steps = plan_of({"id": "one", "outputs": ["CONTRACTS/a.avsc"]}, {"id": "two", "outputs": ["CONTRACTS/b.proto"]})
    monkeypatch.setitem(sys.modules, "proto_schema_parser", None)
    install = "proto_schema_parser is not installed: install the extra 'contracts' to have it validated"
    whys = {
        "step one makes CONTRACTS/a.avsc": "no kind of definition is known for .avsc",
        "step two makes CONTRACTS/b.proto": install,
    }
    assert course(tmp_path, steps, lambda *_: "").orchestrator.check() == tuple(
        f"{step}, which nothing here validates ({why}): add an integration check" for step, why in whys.items()
    )
    check = CommandCheck("integration", "{python} -c print(1)")
    assert course(tmp_path, steps, lambda *_: "", checks=[check]).orchestrator.check() == ()


def test_the_reviewer_chooses_where_evals_are_even(tmp_path: Path) -> None:
    """Both candidates are kept word for word; choice and reason are recorded, and are a decision of the plan."""
    answers = {"one.comparison-1": '{"choice": 2, "reason": "it is shorter"}', "one.secondary-1": "b"}
    plan = dual(tmp_path, lambda run_id, _: answers.get(run_id, "")).lock()
    result = plan.orchestrator.run()
    (compared,) = plan.events(StepCompared)
    kept = [work.output.text for work in plan.events(WorkFinished) if work.output and work.purpose[-3:] == "ary"]
    assert (kept, [blob.text for blob in compared.candidates]) == (["text of one.primary-1", "b"],) * 2
    assert (compared.chosen, compared.reason) == (1, "evals are even; reviewer: it is shorter")
    record = next((tmp_path / "studio/ADR").iterdir()).read_text()
    assert ("it is shorter" in record, result.decisions) == (True, ("Step one: the output of second",))
    assert (tmp_path / "studio/RUNS/p/step_one_output.md").read_text() == "b"
    assert result.by_id["one"].model == "second"


def test_what_was_not_chosen_lies_beside_what_was(tmp_path: Path) -> None:
    """The decision record names its file, and the runs that hold both."""
    plan = dual(tmp_path, lambda run_id, _: '{"choice": 2, "reason": "r"}' if "comparison" in run_id else "").lock()
    plan.orchestrator.run()
    other = tmp_path / "studio/RUNS/p/step_one_other.1.md"
    record = next((tmp_path / "studio/ADR").iterdir()).read_text()
    names = (
        "The other one, of writer, is not used: RUNS/p/step_one_other.1.md",
        "p.one.primary-1",
        "p.one.secondary-1",
    )
    assert (other.read_text(), [name in record for name in names]) == ("text of one.primary-1", [True] * 3)


def dual(place: Path, answer: Answer, step: dict[str, Any] | None = None, **options: Any) -> Course:
    """A plan of one step, which two models do."""
    treatment = Treatment(primary="writer", secondary="second", reviewer="reviewer", mode=Mode.DUAL_RUN)
    return course(place, plan_of({"id": "one", **(step or {})}), answer, policy=Policy(default=treatment), **options)


@pytest.mark.parametrize(("primary", "chosen"), [("assert True\nprint('ok')", 0), ("assert False", 1)])
def test_evals_choose_before_any_reviewer(tmp_path: Path, primary: str, chosen: int) -> None:
    """Where one candidate opens more gates, no reviewer is asked which is the better one."""
    answers = {"one.primary-1": primary, "one.secondary-1": "print('ok')" if chosen else "assert False"}
    check = CommandCheck("qa", "{python} a.py", launcher=CONTAINMENT)
    step = {"outputs": ["a.py"], "test_plan": ["run it"]}
    plan = dual(tmp_path, lambda run_id, _: answers.get(run_id, ""), step, checks=[check]).lock()
    assert plan.orchestrator.run().status == "completed"
    (compared,) = plan.events(StepCompared)
    names = ("writer", "second")
    assert (compared.chosen, compared.reason) == (chosen, f"evals: {names[chosen]} passes qa; {names[1 - chosen]} none")
    assert "comparison" not in {work.purpose for work in plan.events(WorkFinished)}


@attrs.frozen
class CountingCheck:
    """Captures the report of a suite whose cases are the letters that an output has to hold."""

    letters: str
    kind: ReviewKind = ReviewKind.QA
    steps: tuple[str, ...] = ()

    async def look(self, examination: Examination) -> Evidence:
        """The cases that pass."""
        passed = sum(letter in examination.output for letter in self.letters)
        failed = len(self.letters) - passed
        said = f"{passed} passed, {failed} failed".encode()
        return Evidence(
            kind=self.kind, command=("suite",), exit_status=int(failed > 0), output=said,
            cases_passed=passed, cases_failed=failed,
        )  # fmt: skip


def test_evals_choose_by_cases_where_gates_are_even(tmp_path: Path) -> None:
    """Of two candidates that both fail, the one that passes more cases is the step's; then it is fixed."""
    answers = {"one.primary-1": "a", "one.secondary-1": "ab", "one.primary-2": "abc", "one.secondary-2": "c"}
    step = {"test_plan": ["run it"]}
    plan = dual(tmp_path, lambda run_id, _: answers.get(run_id, ""), step, checks=[CountingCheck("abc")]).lock()
    assert plan.orchestrator.run().status == "completed"
    assert [(each.chosen, each.reason) for each in plan.events(StepCompared)] == [
        (1, "evals: second passes none (2 cases); writer none (1 cases)"),
        (0, "evals: writer passes qa (3 cases); second none (1 cases)"),
    ]


PROVIDER_USAGE = Usage(input_tokens=300, output_tokens=10)


def three_executors(place: Path, budget: Budget) -> Course:
    """A step for each executor; the agent reads what the step before made, the suite wants a second candidate."""
    turns = [
        Reply(calls=(ToolCall(id="1", tool="read_file", arguments={"path": "a.txt"}),), usage=PROVIDER_USAGE),
        Reply(
            calls=(ToolCall(id="2", tool="write_file", arguments={"path": "b.txt", "content": "b"}),),
            usage=PROVIDER_USAGE,
        ),
        Reply(blocks=({"type": "text", "text": "done"},), usage=PROVIDER_USAGE),
    ]
    candidates = iter(["bad", "good"])

    def used(text: str) -> Generation:
        return Generation(candidate=Candidate(text), usage=Usage(input_tokens=300, output_tokens=10))

    limited = {"max_tokens": 50}
    models = {
        "writer": GeneratorModel(lambda _: used("a"), parameters=limited),
        "agent": AgentModel(ScriptedProvider(turns), parameters=limited),
        "conformer": GeneratorModel(lambda _: used(next(candidates)), parameters=limited),
        "reviewer": GeneratorModel(lambda _: used(decided("approved")), parameters=limited),
    }
    steps = (
        {"id": "plain", "outputs": ["a.txt"]},
        {
            "id": "agent", "model": "agent", "executor": "agent", "depends_on": ["plain"],
            "inputs": ["a.txt", "CONTEXT/style.md"], "outputs": ["b.txt"],
        },
        {"id": "conforming", "model": "conformer", "executor": "conformance", "depends_on": ["agent"]},
    )  # fmt: skip
    policy = Policy(default=Treatment(primary="writer", reviewer="reviewer"))
    suites = {"conforming": lambda submission: {"is good": submission.candidate.text == "good"}}
    plan = plan_of(*steps, context_requirements=["CONTEXT/style.md"])
    made = course(place, plan, lambda *_: "", models=models, policy=policy, suites=suites, budget=budget)
    made.orchestrator.studio.files.write("CONTEXT/style.md", b"Be brief.\n")
    return made.lock()


def test_each_executor_and_one_ledger_over_all(tmp_path: Path) -> None:
    """A call, an agent and a conformance run do a step each; the plan is charged what their own runs were, no more."""
    plan = three_executors(tmp_path, Budget(tokens=2_000_000, attempts=None))
    result = plan.orchestrator.run()
    lifecycles = {work.step: work.executor for work in plan.events(WorkStarted) if work.purpose == "primary"}
    assert (result.status, lifecycles) == (
        "completed", {"plain": "generator", "agent": "agent", "conforming": "conformance"},
    )  # fmt: skip
    ids = [work.child_id for work in plan.events(WorkStarted)]
    charges = [charged_by(asyncio.run(load_child(plan.journal, each))) for each in ids]
    turns, calls = 3, 1 + 2 + 3  # of the agent; of the writer, the conformer, and of the reviewer
    spent = (turns * 300 + calls * 300, turns * 10 + calls * 10)
    assert (sum(each.input_tokens for each in charges), sum(each.output_tokens for each in charges)) == spent
    assert (result.usage.input_tokens, result.usage.output_tokens, plan.findings()) == (*spent, [])


def test_no_executor_spends_beyond_the_plans_ledger(tmp_path: Path) -> None:
    """Wherever the limit falls, in a call, in an agent or in a conformance run, it holds and is said."""
    stopped = set()
    for tokens in (500, 1_250, 2_250, 2_750, 3_500):
        plan = three_executors(tmp_path / str(tokens), Budget(tokens=tokens, attempts=None))
        result = plan.orchestrator.run()
        assert (result.usage.input_tokens + result.usage.output_tokens <= tokens, plan.findings()) == (True, [])
        assert getattr(result, "limit", "tokens") == "tokens"
        stopped.add(next((step.id for step in result.steps if step.state != "completed"), result.status))
    assert stopped == {"plain", "agent", "conforming", "completed"}


def test_the_workspace_of_an_agent_holds_its_inputs(tmp_path: Path) -> None:
    """What earlier steps made and what lies in the studio, each under its own name."""
    plan = three_executors(tmp_path, Budget(tokens=2_000_000, attempts=None))
    plan.orchestrator.run()
    place = tmp_path / "studio/WORK/p.agent.primary-1"
    found = {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}
    assert found == {"a.txt": "a", "b.txt": "b", "CONTEXT/style.md": "Be brief.\n"}


def test_what_depends_on_a_step_waits_for_its_followup(tmp_path: Path) -> None:
    """It reads what the follow-up made; conditions of a follow-up itself are missing before a rollout."""
    told = {
        "w.review-1": decided("approved_with_conditions", conditions=["name the author"]),
        "w-followup.review-1": decided("approved_with_conditions", conditions=["name the editor"]),
    }
    steps = ({"id": "w", "outputs": ["w.md"]}, {"id": "after", "depends_on": ["w"], "inputs": ["w.md"]})
    plan = course(tmp_path, plan_of(*steps), lambda run_id, _: told.get(run_id, "")).lock()
    result = plan.orchestrator.run()
    began = [event.step for event in heard(plan, StepStarted)]
    assert (began, "text of w-followup.primary-1" in plan.prompt("p.after.primary-1")) == (
        ["w", "w-followup", "after"],
        True,
    )
    assert isinstance(result, PlanCompletedResult)
    assert result.missing == ("step w-followup was approved on a condition that is not met: name the editor",)
    notes = (tmp_path / "studio/RUNS/p/release_notes.md").read_text()
    assert "met\n\n- w, by w-followup: `name the author`\n" in notes
    assert (result.open_risks, plan.findings()) == (("step w-followup: name the editor",), [])


def test_what_a_step_says_is_on_the_context_bus(tmp_path: Path) -> None:
    """'Save output … and update Context Bus', also where a step names no outputs; later steps can have it as input."""
    name = "step_one_output.md"
    plan = course(
        tmp_path, plan_of({"id": "one"}, {"id": "two", "depends_on": ["one"], "inputs": [name]}), lambda *_: ""
    )
    assert plan.lock().orchestrator.run().status == "completed"
    prompt = plan.prompt("p.two.primary-1")
    assert (f"{name}, from step one:" in prompt, "text of one.primary-1" in prompt) == (True, True)
    state = json.loads((tmp_path / "studio/STATE/state.json").read_text())
    places = {key: (each["path"], each["status"]) for key, each in state["artifacts"].items()}
    assert places == {
        name: ("RUNS/p/step_one_output.1.md", "reviewed"),
        "step_two_output.md": ("RUNS/p/step_two_output.1.md", "reviewed"),
    }
    published = [(each.path, each.standing) for each in plan.events(ArtifactPublished, "p.one")]
    assert published == [("RUNS/p/step_one_output.1.md", standing) for standing in ("unreviewed", "reviewed")]
    assert plan.findings() == []


def test_a_conformance_step_never_goes_to_a_model_that_cannot_conform(tmp_path: Path) -> None:
    """A suite is not passed by without a word: not by a secondary, not by the model that the step is escalated to."""
    agent = AgentModel(ScriptedProvider([]))
    plan = course(
        tmp_path,
        plan_of({"id": "one", "executor": "conformance"}),
        lambda *_: "",
        models={"StrongReasoningModel": agent},
        suites={"one": lambda _: {"is good": True}},
    ).lock()
    with pytest.raises(PlanNotReadyError, match="'StrongReasoningModel' cannot do") as error:
        plan.orchestrator.run()
    assert len(error.value.faults) == 1

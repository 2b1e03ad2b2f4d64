"""Contract 5, sentence by sentence: each test quotes the sentence that it holds the plan orchestrator to."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.audit import audit
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.contextbus import ContextBus, MissingArtifactsError
from orchestrator.plan.engine import PlanChangedError, PlanOrchestrator, PlanStateError
from orchestrator.plan.outcome import PlanBlockedResult, PlanCompletedResult, PlanReport
from orchestrator.plan.plan import PlanError, read_plan
from orchestrator.plan.policyfiles import default_policy
from orchestrator.plan.review import Review, ReviewStatus
from orchestrator.replay import replay
from orchestrator.testing import RecordingSubscriber
from orchestrator_events.plan import (
    ArtifactPublished,
    PlanAmended,
    PlanCompleted,
    StepCompared,
    StepEscalated,
    StepExecuted,
    StepReviewed,
    StepRouted,
    StepSettled,
    StepStarted,
    StepVerified,
    WorkStarted,
)
from orchestrator_events.record import Record
from orchestrator_states.plan import PLAN, STEP

MEMORY = Path("/dev/shm")


def loaded(name: str) -> ModuleType:
    """A module that lies beside the fault tests."""
    path = Path(__file__).parents[1] / "faults" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHOP = loaded("plan_victim")


@attrs.frozen
class Executed:
    """The plan of eight steps after it was executed to its end."""

    root: Path
    journal: MemoryJournal
    report: PlanReport
    heard: tuple[Record, ...]
    prompts: dict[str, str]

    def events(self, run_id: str, kind: type[Any]) -> list[Any]:
        """The events of a kind in one run."""
        return [record.event for record in self.journal.streams[run_id].records if isinstance(record.event, kind)]

    def read(self, path: str) -> str:
        """A file of the studio."""
        return (self.root / path).read_text()


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory whose writes cost nothing, where the machine has one."""
    found = Path(tempfile.mkdtemp(prefix="studio-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield found
    shutil.rmtree(found)


@pytest.fixture(scope="module")
def shop(place: Path) -> Executed:
    """The plan, executed once: reviewed, locked, blocked, amended, reviewed and locked again, completed."""
    journal, heard = MemoryJournal(), RecordingSubscriber()
    orchestrator = SHOP.shop(place / "shop", journal)
    orchestrator.bus.subscribe(heard)
    report = SHOP.gone_on(orchestrator)
    prompts = {
        record.event.child_id: record.event.prompt.text or ""
        for record in heard.records
        if isinstance(record.event, WorkStarted)
    }
    return Executed(place / "shop", journal, report, tuple(heard.records), prompts)


def small(step_fields: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A plan of one step."""
    return {"plan_id": "small", "goal": "g", "steps": [SHOP.step("one", **(step_fields or {}))], **fields}


def made(place: Path, plan: dict[str, Any], answers: Any, **options: Any) -> PlanOrchestrator:
    """An orchestrator whose models answer by a function of the run's id."""
    models = {name: (lambda request: answers(request.run_id)) for name in SHOP.MODELS} | options.pop("own", {})
    options.setdefault("has_release_manager", False)
    options.setdefault("studio", ContextBus(root=Path(tempfile.mkdtemp(dir=place))))
    return PlanOrchestrator(read_plan(plan, "plan.json"), models=models, **options)


def locked(orchestrator: PlanOrchestrator) -> PlanOrchestrator:
    """The same, its plan reviewed and locked."""
    orchestrator.review(SHOP.approval(), "Ada")
    orchestrator.lock()
    return orchestrator


def approving(run_id: str) -> str:
    """Every output is a line, every review an approval."""
    return str(SHOP.decided("approved")) if ".review-" in run_id else "done"


def events_of(orchestrator: PlanOrchestrator, run_id: str, kind: type[Any]) -> list[Any]:
    """The events of a kind in one run of the orchestrator's journal."""

    async def read() -> list[Any]:
        return [entry.record.event async for entry in orchestrator.journal.read(run_id)]

    return [event for event in asyncio.run(read()) if isinstance(event, kind)]


# Mission


def test_coordinates_models_and_roles(shop: Executed) -> None:
    """'Coordinate multiple models and roles to execute plans reliably'"""
    assert isinstance(shop.report, PlanCompletedResult)
    worked = {record.event.model for record in shop.heard if isinstance(record.event, WorkStarted)}
    roles = {record.event.role for record in shop.heard if isinstance(record.event, WorkStarted)}
    assert worked == set(SHOP.MODELS)
    assert roles == {"Architect", "Implementer", "Designer", "Planner", "Reviewer", "Release Manager"}


def test_maintains_the_context_bus(place: Path) -> None:
    """'maintain the Context Bus': after each command, and while models work, both files tell where the plan is."""
    told: list[tuple[str, bool]] = []

    def look() -> None:
        state = json.loads((orchestrator.studio.root / "STATE/state.json").read_text())
        page = (orchestrator.studio.root / "STATE/STATE.md").read_text()
        lines = (f"- Lifecycle: {state['lifecycle']}\n", f"- Revision: {state['revision']}\n")
        told.append((state["lifecycle"], all(line in page for line in lines)))

    def answers(run_id: str) -> str:
        look()
        return approving(run_id)

    orchestrator = made(place, small(), answers)
    other = read_plan(small(goal="another"), "plan.json")
    commands: list[Callable[[], object]] = [
        partial(orchestrator.review, SHOP.approval(), "Ada"),
        partial(orchestrator.amend, other, "the goal was wrong"),
        partial(orchestrator.review, SHOP.approval(), "Ada"),
        orchestrator.lock,
        orchestrator.run,
    ]
    for command in commands:
        command()
        look()
    states = ["reviewed", "amended", "reviewed", "locked", "executing", "executing", "completed"]
    assert told == [(state, True) for state in states]


def test_enforces_routing_policies(shop: Executed) -> None:
    """'enforce lifecycle and routing policies': nobody works on a step but whom its recorded route names."""
    strangers = []
    for run_id in shop.journal.streams:
        named: set[str] = set()
        for record in shop.journal.streams[run_id].records:
            if isinstance(record.event, StepRouted):
                named = {record.event.primary, record.event.secondary, record.event.reviewer}
            elif isinstance(record.event, WorkStarted) and record.event.model not in named:
                strangers.append((run_id, record.event.model))
    assert strangers == []


def test_enforces_lifecycle_policies(place: Path) -> None:
    """'enforce lifecycle and routing policies': a command that does not fit is refused, and names the next one."""
    orchestrator = made(place, small(), approving)
    refused = []
    for command in (orchestrator.run, orchestrator.lock):
        with pytest.raises(PlanStateError) as error:
            command()
        refused.append(error.value.next_command)
    orchestrator.review(SHOP.approval(), "Ada")
    with pytest.raises(PlanStateError) as error:
        orchestrator.run()
    assert [*refused, error.value.next_command] == ["plan review", "plan review", "plan lock"]


def test_runs_what_is_locked_and_nothing_else(place: Path) -> None:
    """'enforce lifecycle policies': amended plans run once they are locked again, ended ones never."""
    orchestrator = locked(made(place, small(), approving))
    orchestrator.amend(read_plan(small(goal="another"), "plan.json"), "the goal was wrong")
    refused = []
    with pytest.raises(PlanStateError) as error:
        orchestrator.run()
    refused.append(error.value.next_command)
    assert isinstance(locked(orchestrator).run(), PlanCompletedResult)
    given_up = locked(made(place, small(), approving))
    given_up.abandon("nobody wants it")
    for ended in (orchestrator, given_up):
        with pytest.raises(PlanStateError) as error:
            ended.run()
        refused.append(error.value.next_command)
    assert refused == ["plan review", "", ""]


# Core concepts


def test_context_bus(shop: Executed) -> None:
    """'Context Bus: STATE/state.json (Machine-readable) and STATE/STATE.md (Human-readable)'"""
    state = json.loads(shop.read("STATE/state.json"))
    page = shop.read("STATE/STATE.md")
    assert (state["plan_id"], state["lifecycle"], state["run_id"]) == ("shop", "completed", "shop")
    assert all(text in page for text in ("`shop`", "completed", "## Open risks", "## Decisions"))


def test_plan_lifecycle(shop: Executed) -> None:
    """'Plan Lifecycle: draft → reviewed → locked → executing → amended → completed'"""
    states = [record.target for record in shop.journal.streams["shop"].records if record.source != record.target]
    assert states == [
        "draft", "reviewed", "locked", "executing", "amended", "reviewed", "locked", "executing", "completed",
    ]  # fmt: skip
    assert {"draft", "reviewed", "locked", "executing", "amended", "completed"} < set(PLAN.states)


def test_completed_without_amendment(place: Path) -> None:
    """executing → completed: a plan that needs no amendment has none."""
    orchestrator = locked(made(place, small(), approving))
    assert isinstance(orchestrator.run(), PlanCompletedResult)
    moves = [
        (record.source, record.target) for record in orchestrator.status().records if record.source != record.target
    ]
    assert moves[-1] == ("executing", "completed")


def test_routing_policy_engine(place: Path) -> None:
    """'Routing Policy Engine: Driven by /studio/POLICIES/routing_policy.yaml': a policy file decides who works."""
    policy = place / "routing_policy.yaml"
    policy.write_text(
        "strategies:\n  - name: all\n    conditions: {risk_level: low}\n    primary_model: GLM\n"
        "defaults: {primary: Claude, reviewer: Reviewer}\n"
    )
    orchestrator = locked(made(place, small(), approving, policy=policy))
    orchestrator.run()
    (route,) = events_of(orchestrator, "small.one", StepRouted)
    assert (route.rule, route.primary, route.reviewer) == ("all", "GLM", "Reviewer")


def test_the_policy_of_the_studio(place: Path) -> None:
    """'Driven by /studio/POLICIES/routing_policy.yaml': the studio's own policy holds where no other is given."""
    studio = ContextBus(root=Path(tempfile.mkdtemp(dir=place)))
    studio.files.write("POLICIES/routing_policy.yaml", b"strategies: []\ndefaults: {primary: GLM, reviewer: Claude}\n")
    given = read_plan(small(), "plan.json")
    default = PlanOrchestrator(given, studio=studio).policy.default
    assert (default.primary, default.reviewer) == ("GLM", "Claude")
    assert PlanOrchestrator(given, studio=studio, policy=default_policy()).policy == default_policy()


def test_correction_loop(shop: Executed) -> None:
    """'Correction Loop: structured retry with escalation and max retries'"""
    numbers = [event.number for event in shop.events("shop.cart", StepStarted)]
    (escalated,) = shop.events("shop.cart", StepEscalated)
    assert (numbers, escalated.failures, escalated.model) == ([1, 2, 3], 2, "StrongReasoningModel")


# Behavior


def test_loads_the_plan_and_validates_its_state(place: Path) -> None:
    """'Load plan (plan.json) and validate lifecycle state': a locked plan that was changed is not executed."""
    orchestrator = locked(made(place, small(), approving))
    path = place / "plan.json"
    path.write_text(json.dumps(small(goal="another")))
    changed = PlanOrchestrator(
        path, models=orchestrator.models, studio=orchestrator.studio, journal=orchestrator.journal
    )
    with pytest.raises(PlanChangedError) as error:
        changed.run()
    assert (error.value.recorded, error.value.found) == (orchestrator.plan.digest, changed.plan.digest)


def test_validates_the_state_that_the_file_states(place: Path) -> None:
    """'Load plan (plan.json) and validate lifecycle state': a file that says locked is believed once it is so."""
    orchestrator = made(place, small(lifecycle="locked"), approving)
    with pytest.raises(PlanError, match=r"\$\.lifecycle: says locked, which the journal does not know of"):
        orchestrator.review(SHOP.approval(), "Ada")
    draft = locked(made(place, small(), approving, journal=orchestrator.journal))
    assert (draft.status().state, orchestrator.run().status) == ("locked", "completed")


def test_required_artifacts_exist(place: Path) -> None:
    """'Ensure required context artifacts exist in /studio': all that are missing are named, nothing is spent."""
    orchestrator = locked(made(place, small(context_requirements=["CONTEXT/a.md", "CONTEXT/b.md"]), approving))
    with pytest.raises(MissingArtifactsError) as error:
        orchestrator.run()
    assert (set(error.value.missing), orchestrator.status().state) == ({"CONTEXT/a.md", "CONTEXT/b.md"}, "locked")


def test_dependency_order(shop: Executed) -> None:
    """'For each step in dependency order': none begins before all that it depends on are completed."""
    began: dict[str, int] = {}
    ended: dict[str, int] = {}
    for place, record in enumerate(shop.heard):
        if isinstance(record.event, StepStarted):
            began.setdefault(record.event.step, place)
        elif record.lifecycle == "step" and record.target == "completed" != record.source:
            ended[record.run_id.removeprefix("shop.")] = place
    early = [
        (step.id, other)
        for step in shop.report.plan.steps
        for other in step.depends_on
        if began[step.id] < ended[other]
    ]
    assert early == []


def test_inputs_are_injected(shop: Executed) -> None:
    """'Resolve inputs and inject required artifacts from Context Bus.'"""
    assert "def price(count)" in shop.prompts["shop.cart.primary-1"]
    assert "A shop." in shop.prompts["shop.design.primary-1"]


def test_models_by_policy(shop: Executed) -> None:
    """'Select model(s) via Routing Policy Engine', and the match is recorded with its reason."""
    routes = {name: shop.events(f"shop.{name}", StepRouted)[0] for name in ("payment", "screens", "prices", "naming")}
    assert {name: (route.rule, route.primary, route.mode) for name, route in routes.items()} == {
        "payment": ("high-risk", "Claude", "single"),
        "screens": ("ux", "Gemini", "single"),
        "prices": ("implementation-draft", "GLM", "post-pass"),
        "naming": ("ambiguous", "Claude", "dual-run"),
    }
    assert all(route.reason for route in routes.values())


def test_step_prompt_template(shop: Executed) -> None:
    """'Build Step Prompt using Step Prompt Template: GOAL, CONTEXT, INPUTS, CONSTRAINTS, TASK, ACCEPTANCE CRITERIA,
    CHECKLIST, FORBIDDEN, OUTPUT FORMAT'
    """
    sections = [line[2:] for line in shop.prompts["shop.design.primary-1"].splitlines() if line.startswith("# ")]
    assert sections == [
        "GOAL", "CONTEXT", "INPUTS", "CONSTRAINTS", "TASK", "ACCEPTANCE CRITERIA", "CHECKLIST", "FORBIDDEN",
        "OUTPUT FORMAT",
    ]  # fmt: skip


def test_executed_with_the_chosen_models(shop: Executed) -> None:
    """'Execute step with chosen model(s)': escalation, dual run and post-pass are separate runs of one model each."""
    works = [(event.purpose, event.model) for event in shop.events("shop.naming", WorkStarted)]
    assert works == [
        ("primary", "Claude"), ("secondary", "Codex (GPT)"), ("comparison", "Reviewer"), ("review", "Reviewer"),
    ]  # fmt: skip
    (compared,) = shop.events("shop.naming", StepCompared)
    assert [blob.text for blob in compared.candidates] == ["# Names of Claude\n", "# Names of Codex\n"]
    assert (compared.chosen, "shorter" in compared.reason) == (1, True)


def test_output_is_saved(shop: Executed) -> None:
    """'Save output to /studio/RUNS/<run_id>/step_<id>_output.md and update Context Bus', at once, as unreviewed."""
    assert shop.read("RUNS/shop/step_design_output.md") == "# Design\n"
    standings = [event.standing for event in shop.events("shop.design", ArtifactPublished)]
    records = [record.event.name for record in shop.journal.streams["shop.design"].records]
    assert standings == ["unreviewed", "reviewed"]
    assert records.index("artifact:published") < records.index("step:reviewed")


def test_the_bus_knows_an_output_before_its_review(place: Path) -> None:
    """'Save output ... and update Context Bus': the reviewer finds it there, unreviewed; afterwards it is reviewed."""
    found: list[Any] = []

    def look() -> None:
        state = json.loads((orchestrator.studio.root / "STATE/state.json").read_text())
        (artifact,) = state["artifacts"].values()
        saved = (orchestrator.studio.root / "RUNS/small/step_one_output.md").read_text()
        found.append((saved, artifact["status"], (orchestrator.studio.root / artifact["path"]).read_text()))

    def answers(run_id: str) -> str:
        if ".review-" in run_id:
            look()
        return approving(run_id)

    orchestrator = locked(made(place, small({"outputs": ["one.md"]}), answers))
    orchestrator.run()
    look()
    assert found == [("done", "unreviewed", "done"), ("done", "reviewed", "done")]


def test_qa_and_security(shop: Executed) -> None:
    """'Trigger QA and Security agents as required by step metadata': gates open by captured output alone."""
    (verified,) = shop.events("shop.payment", StepVerified)
    (evidence,) = json.loads(verified.evidence.text)
    assert (evidence["kind"], evidence["exit_status"], "scanned" in evidence["output"]) == ("security", 0, True)
    assert "scanned" in shop.read("RUNS/shop/step_payment_security.1.1.log")


def test_agents_of_qa_and_security(place: Path) -> None:
    """The same, with models in those roles: what they say goes to the reviewer, and opens no gate."""
    check = SHOP.CommandCheck("qa", "{python} -c print(1)", launcher=SHOP.CONTAINMENT)
    answers = {"small.one.qa-1": "The edge case of zero is untested."}
    orchestrator = made(
        place,
        small({"test_plan": ["try it"]}),
        lambda run_id: answers.get(run_id) or approving(run_id),
        checks=[check],
        examiners={"qa": "Gemini"},
    )
    locked(orchestrator).run()
    works = {event.purpose: event for event in events_of(orchestrator, "small.one", WorkStarted)}
    assert (works["qa"].role, works["qa"].model) == ("QA", "Gemini")
    assert "edge case of zero" in (works["review"].prompt.text or "")


def test_reviewer_gets_output_and_artifacts(shop: Executed) -> None:
    """'Send output and artifacts to Reviewer.'"""
    prompt = shop.prompts["shop.payment.review-1"]
    assert all(text in prompt for text in ("def pay(amount)", "security: open", "security_checklist"))


def test_reviewer_gets_each_artifact_and_report(place: Path) -> None:
    """'Send output and artifacts to Reviewer.': every file by its name, and what the checks captured."""
    files = "```python a.py\nfirst = 1\n```\n\n```python b.py\nsecond = 2\n```\n"

    def answers(run_id: str) -> str:
        return files if run_id == "small.one.primary-1" else approving(run_id)

    check = SHOP.CommandCheck("qa", "{python} -c print(1)", launcher=SHOP.CONTAINMENT)
    orchestrator = made(place, small({"outputs": ["a.py", "b.py"], "test_plan": ["try it"]}), answers, checks=[check])
    assert isinstance(locked(orchestrator).run(), PlanCompletedResult)
    works = events_of(orchestrator, "small.one", WorkStarted)
    prompts = [event.prompt.text or "" for event in works if event.purpose == "review"]
    told = ("a.py, from this step", "first = 1", "b.py, from this step", "second = 2", "qa: open, captured")
    assert [[text in prompt for text in told] for prompt in prompts] == [[True] * len(told)]


def test_fix_step(shop: Executed) -> None:
    """'Create a Fix Step with same role, include reviewer feedback'"""
    first, second = shop.events("shop.screens", StepStarted)
    assert (first.role, second.role, second.number) == ("Designer", "Designer", 2)
    assert "say what the buttons do" in shop.prompts["shop.screens.primary-2"]
    assert shop.read("RUNS/shop/step_screens_output.1.md") == "# Screens, not reviewed\n"


def test_at_most_three_fixes(place: Path) -> None:
    """'retry up to 3 times': the fourth execution is the last, and the step has failed."""

    def refusing(run_id: str) -> str:
        asked = SHOP.decided("changes_requested", required_fixes=["do better"])
        return str(asked) if ".review-" in run_id else "done"

    orchestrator = locked(made(place, small(), refusing))
    result = orchestrator.run()
    assert isinstance(result, PlanBlockedResult)
    assert (result.by_id["one"].state, result.by_id["one"].executions) == ("failed", 4)


def test_escalation(shop: Executed) -> None:
    """'If implementer fails twice, escalate to StrongReasoningModel for refactor.'"""
    models = [event.model for event in shop.events("shop.cart", StepStarted)]
    assert models == ["Codex (GPT)", "Codex (GPT)", "StrongReasoningModel"]
    assert "Refactor. 2 attempts" in shop.prompts["shop.cart.primary-3"]


def test_approval_completes(shop: Executed) -> None:
    """'If Reviewer approves, mark step completed and proceed.'"""
    (reviewed,) = shop.events("shop.design", StepReviewed)
    assert (reviewed.outcome, shop.report.by_id["design"].state) == ("approved", "completed")
    settled = {event.step: place for place, event in enumerate(shop.events("shop", StepSettled))}
    assert settled["design"] < min(settled[step.id] for step in shop.report.plan.steps if "design" in step.depends_on)


def test_conditions_are_followed_up(shop: Executed) -> None:
    """Approved with conditions: a follow-up step carries them."""
    assert shop.report.by_id["manual"].followup == "manual-followup"
    assert shop.report.plan.step("manual-followup").acceptance_criteria == ("add an index",)


def test_blocked_review_amends_the_plan(shop: Executed) -> None:
    """Blocked: the plan is amended, the difference is recorded, and it is reviewed and locked again."""
    (amended,) = shop.events("shop", PlanAmended)
    assert "Launch on a Monday." in (amended.difference.text or "")
    assert [event.outcome for event in shop.events("shop.launch", StepReviewed)] == ["blocked", "approved"]


def test_release_manager(shop: Executed) -> None:
    """'On plan completion, notify Release Manager to prepare rollout artifacts.'"""
    assert isinstance(shop.report, PlanCompletedResult)
    assert [Path(path).name for path in shop.report.release] == [
        "release_notes.md", "rollout_plan.md", "rollback_plan.md",
    ]  # fmt: skip
    assert all((shop.root / path).is_file() for path in shop.report.release)
    assert shop.prompts["shop.release-manager.primary-1"].count("Your role: Release Manager") == 1
    assert sum(isinstance(record.event, PlanCompleted) for record in shop.heard) == 1


# Routing policy examples: tests of the policy itself are with the policy; here is what becomes of them


def test_high_risk(shop: Executed) -> None:
    """'risk_level high → primary Claude, secondary Codex (GPT), reviewer enforces security checklist'"""
    (route,) = shop.events("shop.payment", StepRouted)
    (reviewed,) = shop.events("shop.payment", StepReviewed)
    assert (route.primary, route.secondary, "security" in route.reviews) == ("Claude", "Codex (GPT)", True)
    assert json.loads(reviewed.review.text)["security_checklist"] == SHOP.SECURITY


def test_the_secondary_of_high_risk_stands_in(place: Path) -> None:
    """'primary Claude, secondary Codex (GPT)': the secondary does the step when the primary cannot be had."""

    def gone(_: Any) -> str:
        raise GeneratorUnavailableError("gone")

    def careful(run_id: str) -> str:
        return str(SHOP.decided("approved")) if ".review-" in run_id else "done"

    check = SHOP.CommandCheck("security", "{python} -c print(1)", launcher=SHOP.CONTAINMENT)
    orchestrator = made(place, small({"risk_level": "high"}), careful, checks=[check], own={"Claude": gone})
    assert isinstance(locked(orchestrator).run(), PlanCompletedResult)
    works = [(event.purpose, event.model) for event in events_of(orchestrator, "small.one", WorkStarted)]
    assert works == [("primary", "Claude"), ("secondary", "Codex (GPT)"), ("review", "Reviewer")]


def test_ux(shop: Executed) -> None:
    """'UX tasks → primary Gemini'"""
    assert {event.primary for event in shop.events("shop.screens", StepRouted)} == {"Gemini"}
    done = [event.model for event in shop.events("shop.screens", WorkStarted) if event.purpose == "primary"]
    assert done == ["Gemini", "Gemini"]


def test_high_risk_needs_the_security_checklist(place: Path) -> None:
    """'reviewer enforces security checklist': an approval without it is none."""

    def careless(run_id: str) -> str:
        return json.dumps({"status": "approved", "checklist": SHOP.CHECKLIST}) if ".review-" in run_id else "done"

    check = SHOP.CommandCheck("security", "{python} -c print(1)", launcher=SHOP.CONTAINMENT)
    orchestrator = locked(made(place, small({"risk_level": "high"}), careless, checks=[check]))
    result = orchestrator.run()
    assert isinstance(result, PlanBlockedResult)
    assert "security_checklist" in result.blocked["one"]


def test_post_pass(shop: Executed) -> None:
    """'Implementation drafts → primary GLM, post-pass Codex (GPT) refactor'"""
    works = [(event.purpose, event.model) for event in shop.events("shop.prices", WorkStarted)][:2]
    (executed,) = shop.events("shop.prices", StepExecuted)
    assert works == [("primary", "GLM"), ("post-pass", "Codex (GPT)")]
    assert "# draft" in shop.prompts["shop.prices.post-pass-1"]
    assert executed.output.text == SHOP.fenced(SHOP.PRICES)


def test_evals_decide_a_dual_run_first(place: Path) -> None:
    """'Ambiguous tasks → dual-run Claude + Codex (GPT), compare outputs': evals first, then the reviewer."""
    check = SHOP.CommandCheck(
        "qa", "{python} -m unittest test_prices", suite={"test_prices.py": SHOP.TEST_PRICES}, launcher=SHOP.CONTAINMENT
    )
    answers = {
        "small.one.primary-1": SHOP.fenced("def price(count):\n    return count\n"),
        "small.one.secondary-1": SHOP.fenced(SHOP.PRICES),
    }
    plan = small({"ambiguity": True, "test_plan": ["run it"], "outputs": ["prices.py"]})
    orchestrator = locked(made(place, plan, lambda run_id: answers.get(run_id) or approving(run_id), checks=[check]))
    assert isinstance(orchestrator.run(), PlanCompletedResult)
    (compared,) = events_of(orchestrator, "small.one", StepCompared)
    assert (compared.chosen, compared.reason) == (1, "evals: Codex (GPT) passes qa; Claude none")


# Persistence and artifacts


def test_state_page_at_the_other_path(place: Path) -> None:
    """'/studio/STATE.md holds current plan_id, lifecycle, open_risks, decisions': the path is configurable."""

    def blocking(run_id: str) -> str:
        notes = ["nobody is there"]
        return str(SHOP.decided("blocked", diff_risk_notes=notes)) if ".review-" in run_id else "done"

    studio = ContextBus(root=Path(tempfile.mkdtemp(dir=place)), page_path="STATE.md")
    orchestrator = made(place, small(), blocking, studio=studio)
    assert isinstance(locked(orchestrator).run(), PlanBlockedResult)
    orchestrator.amend(read_plan(small({"task": "Do less."}), "plan.json"), "too much")
    sections = (studio.root / "STATE.md").read_text().split("\n## ")
    held = {text.partition("\n")[0]: text for text in sections}
    assert "- Plan: `small`\n- Lifecycle: amended\n" in sections[0]
    assert "nobody is there" in held["Open risks"]
    assert "`Amendment 1 of plan small`" in held["Decisions"]


def test_decision_records(shop: Executed) -> None:
    """'/studio/ADR/ stores architecture decision records'"""
    names = sorted(path.name for path in (shop.root / "ADR").iterdir())
    assert names == ["ADR-0001-step-naming-the-output-of-codex-gpt.md", "ADR-0002-amendment-1-of-plan-shop.md"]
    assert "## Consequences" in shop.read(f"ADR/{names[0]}")


OPENAPI = """openapi: 3.1.0
info: {title: Prices, version: "1"}
paths: {}
"""
CONTRACTS = (
    ("prices.yaml", "openapi_spec_validator", OPENAPI, OPENAPI.replace("title: Prices, ", "")),
    ("price.proto", "proto_schema_parser", 'syntax = "proto3";\nmessage Price { int32 cents = 1; }\n', "message {"),
    ("price.schema.json", "jsonschema", '{"type": "object"}', '{"type": "nonsense"}'),
)


@pytest.mark.parametrize(("name", "library", "good", "bad"), CONTRACTS)
def test_contracts(place: Path, name: str, library: str, good: str, bad: str) -> None:
    """'/studio/CONTRACTS/ stores interface definitions (e.g. valid OpenAPI, Proto) and schemas'

    One that breaks the rules of its format is a failure of the implementer, and never gets there.
    """
    pytest.importorskip(library)
    answers = {"small.one.primary-1": bad, "small.one.primary-2": good}
    plan = small({"outputs": [f"CONTRACTS/{name}"]})
    orchestrator = locked(made(place, plan, lambda run_id: answers.get(run_id) or approving(run_id)))
    assert isinstance(orchestrator.run(), PlanCompletedResult)
    verified = [event.has_passed for event in events_of(orchestrator, "small.one", StepVerified)]
    stored = (orchestrator.studio.root / "CONTRACTS" / name).read_text()
    assert (verified, stored) == ([False, True], good)


def test_runs_folder(shop: Executed) -> None:
    """'/studio/RUNS/<run_id>/ stores step outputs, test reports, reviews'"""
    names = {path.name for path in (shop.root / "RUNS/shop").iterdir()}
    assert {"step_cart_output.md", "step_cart_review.json", "journal.json", "trace.md"} < names
    assert "Ran 1 test" in shop.read("RUNS/shop/step_cart_qa.3.1.log")


# Outputs


def test_trace(shop: Executed) -> None:
    """'Execution trace with timestamps and agent attributions'"""
    rows = [line for line in shop.read("RUNS/shop/trace.md").splitlines() if "`work:started`" in line]
    assert len(rows) == sum(isinstance(record.event, WorkStarted) for record in shop.heard)
    assert any("`Gemini as Designer`" in row and row.startswith("| 20") for row in rows)


def test_trace_tells_everybody(shop: Executed) -> None:
    """'timestamps and agent attributions': each run of a model with its time, model, role and purpose, in order."""
    rows = [line.split(" | ") for line in shop.read("RUNS/shop/trace.md").splitlines() if "`work:started`" in line]
    told = []
    for record in sorted(shop.heard, key=lambda each: (each.at, each.run_id, each.sequence)):
        event = record.event
        if isinstance(event, WorkStarted):
            at = datetime.fromtimestamp(record.at / 1_000_000, UTC).isoformat(timespec="milliseconds")
            told.append((at, f"`{record.run_id}`", f"`{event.model} as {event.role}`", f"`{event.purpose}`"))
    assert [(row[0].removeprefix("| "), row[1], row[3], row[4].removesuffix(" |")) for row in rows] == told


def test_updated_context_bus(shop: Executed) -> None:
    """'Updated Context Bus': at the end it has every step, every artifact as it was reviewed, and every decision."""
    state = json.loads(shop.read("STATE/state.json"))
    artifacts = state["artifacts"]
    assert set(state["completed_steps"]) == {step.id for step in shop.report.plan.steps}
    steps = shop.report.plan.steps
    assert set(artifacts) == {name for step in steps for name in step.outputs or (f"step_{step.id}_output.md",)}
    assert {each["status"] for each in artifacts.values()} == {"reviewed"}
    digests = {name: sha256((shop.root / each["path"]).read_bytes()).hexdigest() for name, each in artifacts.items()}
    assert digests == {name: each["sha256"] for name, each in artifacts.items()}
    assert {each["title"] for each in state["decisions"]} == set(shop.report.decisions)
    assert {name: len(texts) for name, texts in state["failure_history"].items()} == {"screens": 1, "cart": 2}
    assert (state["lifecycle"], state["open_risks"]) == ("completed", [])  # the conditions were followed up


def test_audit_and_replay(shop: Executed) -> None:
    """'Artifacts written to /studio for audit and replay': both work from the folder alone."""
    export = parse_export(shop.read("RUNS/shop/journal.json"))
    report = audit(export, head=shop.report.journal_head.digest, count=shop.report.journal_head.count)
    assert ([str(finding) for finding in report.findings], report.state) == ([], "completed")
    assert len(report.children) == len(shop.journal.streams) - 1
    replayed = sum(len(replay(each)) for each in (export, *export.children))
    assert replayed > len(shop.report.records)


def test_a_plan_with_everything_in_it(shop: Executed) -> None:
    """Eight steps and more, a diamond, high risk, UX, ambiguity, a failing implementer, a blocked review: completed."""
    plan = SHOP.plan()
    steps = plan.by_id
    joined = [step for step in plan.steps if len(step.depends_on) > 1]
    apart = [steps[name].depends_on for name in joined[0].depends_on]
    assert (len(plan.steps) >= 8, len(apart), set(apart)) == (True, 2, {("design",)})
    assert [steps["payment"].risk_level, steps["screens"].task_type, steps["naming"].ambiguity] == ["high", "ux", True]
    assert (shop.report.by_id["cart"].failures, shop.report.by_id["cart"].model) == (2, "StrongReasoningModel")
    launched = [event.outcome for event in shop.events("shop.launch", StepReviewed)]
    assert (launched, {step.state for step in shop.report.steps}) == (["blocked", "approved"], {"completed"})
    ran = [json.loads(event.evidence.text) for event in shop.events("shop.cart", StepVerified)]
    assert [(each["exit_status"], "Ran 1 test" in each["output"]) for (each,) in ran] == [(1, True), (0, True)]


def test_lifecycles_of_steps() -> None:
    """pending → executing → verifying → reviewing → fixing → … → completed / blocked / failed."""
    assert STEP.states == (
        "pending", "executing", "verifying", "reviewing", "fixing", "completed", "blocked", "failed",
    )  # fmt: skip


def test_a_review_that_asks_for_changes_leaves_the_plan_a_draft(place: Path) -> None:
    """draft → reviewed only by an approval; a draft may change until then."""
    orchestrator = made(place, small(), approving)
    refusal = Review(
        status=ReviewStatus.CHANGES_REQUESTED, checklist=SHOP.approval().checklist, required_fixes=("split it",)
    )
    assert orchestrator.review(refusal, "Ada").state == "draft"
    orchestrator.plan = read_plan(small(goal="better"), "plan.json")
    report = orchestrator.review(SHOP.approval(), "Ada")
    assert (report.state, report.plan.goal) == ("reviewed", "better")

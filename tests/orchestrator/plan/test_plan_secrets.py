"""Secrets in plans: in no record, prompt, file or message, but for a candidate, which is kept as it is and reported."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.exposure import SecretExposedError
from orchestrator.importing import parse_export
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.models import GeneratorModel
from orchestrator.plan.outcome import PlanInterruptedError
from orchestrator.plan.plan import read_plan
from orchestrator.plan.review import Checklist, Review, ReviewError, ReviewStatus
from orchestrator.plan.routing import Mode, Policy, Treatment
from orchestrator.ports import Request
from orchestrator.process import CONTAINMENT
from orchestrator.redaction import Secrets
from orchestrator_events.decision import Decision, Proceed
from orchestrator_events.execution import SecretFound
from orchestrator_events.plan import StepExecuted, StepRequested
from orchestrator_events.question import Question

KEY = "sk-proj-0123456789abcdef"
MARK = "[redacted openai]"
SECRETS = Secrets({"openai": KEY})
CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
POLICY = Policy(default=Treatment(primary="writer", secondary="second", reviewer="reviewer"))


def said(status: str = "approved", **more: Any) -> str:
    """A review."""
    return json.dumps({"status": status, "checklist": CHECKLIST, **more})


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step of low risk."""
    base = {"id": step_id, "role": "Writer", "task": f"write {step_id}", "risk_level": "low"}
    return {**base, "acceptance_criteria": ["it is written"], "depends_on": list(after), **fields}


def made(place: Path, *steps: dict[str, Any], **options: Any) -> PlanOrchestrator:
    """An orchestrator with a writer, a second one, and a reviewer who approves; one secret is registered."""
    models = {name: lambda _: "text" for name in ("writer", "second", "StrongReasoningModel")}
    models["reviewer"] = lambda _: said()
    plan = {"plan_id": "p", "goal": "write", "steps": list(steps) or [step("one")], **options.pop("plan", {})}
    settings: dict[str, Any] = {
        "models": {**models, **options.pop("models", {})},
        "policy": POLICY,
        "studio": ContextBus(root=place / "studio"),
        "has_release_manager": False,
        "secrets": SECRETS,
        **options,
    }
    return PlanOrchestrator(read_plan(plan, "plan.json"), **settings)


def locked(orchestrator: PlanOrchestrator) -> PlanOrchestrator:
    """The same with its plan reviewed and locked."""
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    return orchestrator


def exported(orchestrator: PlanOrchestrator) -> str:
    """The whole journal."""
    return asyncio.run(export_json(orchestrator.journal, orchestrator.run_id))


def events(orchestrator: PlanOrchestrator, kind: type[Any]) -> list[Any]:
    """The events of a kind, of the plan and all runs inside it."""

    async def read() -> list[Any]:
        journal = orchestrator.journal
        found = [entry.record.event for run_id in await journal.run_ids() async for entry in journal.read(run_id)]
        return [event for event in found if isinstance(event, kind)]

    return asyncio.run(read())


def holding(place: Path) -> list[str]:
    """The files that hold the secret, or eight characters of it."""
    pieces = [KEY[start : start + 8] for start in range(len(KEY) - 7)]
    files = [path for path in place.rglob("*") if path.is_file()]
    return sorted(path.name for path in files if any(piece in path.read_text() for piece in pieces))


def failing(_: Request) -> str:
    """A model that tells its key as it fails."""
    raise ValueError(f"401 for {KEY}")


def told(_: Request) -> str:
    """A reviewer that repeats the key in everything it may say."""
    return said("changes_requested", required_fixes=[f"remove {KEY}"], diff_risk_notes=[f"{KEY} is out"])


def blocking(_: Request) -> str:
    """A reviewer that blocks."""
    return said("blocked", diff_risk_notes=[f"{KEY} is out"])


def conditional(_: Request) -> str:
    """A reviewer that approves with a condition."""
    return said("approved_with_conditions", conditions=[f"rotate {KEY}"])


@pytest.mark.parametrize("name", ["failing writer", "fixes", "blocked", "conditions", "no review", "examiner", "check"])
def test_what_models_and_programs_say(tmp_path: Path, name: str) -> None:
    """Errors, reviews, notes and captured output are recorded, laid out and shown with a mark in the secret's place."""
    print_key = CommandCheck("qa", ("{python}", "-c", f"print('{KEY}')"), launcher=CONTAINMENT)
    tested = step("one", test_plan=["run it"])
    cases: dict[str, Callable[[], PlanOrchestrator]] = {
        "failing writer": lambda: made(tmp_path, models={"writer": failing, "StrongReasoningModel": failing}),
        "fixes": lambda: made(tmp_path, models={"reviewer": told}),
        "blocked": lambda: made(tmp_path, models={"reviewer": blocking}),
        "conditions": lambda: made(tmp_path, models={"reviewer": conditional}),
        "no review": lambda: made(tmp_path, models={"reviewer": lambda _: f"no {KEY}"}),
        "examiner": lambda: made(
            tmp_path, tested, models={"qa": lambda _: f"it uses {KEY}"}, examiners={"qa": "qa"}, checks=[print_key]
        ),
        "check": lambda: made(tmp_path, tested, checks=[print_key]),
    }
    orchestrator = locked(cases[name]())
    report = json.dumps(orchestrator.run().as_json())
    text = exported(orchestrator)
    assert (KEY[:8] in text, KEY[:8] in report, MARK in text, holding(tmp_path)) == (False, False, True, [])
    assert audit(parse_export(text)).findings == ()


def test_a_candidate_is_kept_as_it_is_and_reported(tmp_path: Path) -> None:
    """Nobody alters an output: the record says which secret stands in it; every prompt shows it with a mark."""
    prompts: list[str] = []

    def reviewer(request: Request) -> str:
        prompts.append(request.prompt)
        return said()

    steps = (step("one", outputs=["one.py"]), step("two", "one", inputs=["one.py"]))
    output = f"KEY = '{KEY}'"

    def writer(request: Request) -> str:
        prompts.append(request.prompt)
        return output if ".one." in request.run_id else "text"

    orchestrator = locked(made(tmp_path, *steps, models={"writer": writer, "reviewer": reviewer}))
    result = orchestrator.run()
    found = [(each.secret, each.is_refused) for each in events(orchestrator, SecretFound)]
    outputs = [each.output.text for each in events(orchestrator, StepExecuted)]
    assert (result.status, found, outputs) == ("completed", [("openai", False)], [output, "text"])
    shown = [(KEY in prompt, MARK in prompt) for prompt in prompts]
    assert shown == [(False, False), (False, True), (False, True), (False, True)]
    assert (tmp_path / "studio/RUNS/p/step_one_output.md").read_text() == output
    assert "KEY" in (tmp_path / "studio/RUNS/p/step_one_artifacts/1/one.py").read_text()
    assert audit(parse_export(exported(orchestrator))).findings == ()


def test_an_output_with_a_secret_can_be_refused(tmp_path: Path) -> None:
    """It is then a failure of the implementer, who is told its name."""
    prompts: list[str] = []

    def writer(request: Request) -> str:
        prompts.append(request.prompt)
        return KEY if len(prompts) == 1 else "text"

    orchestrator = locked(made(tmp_path, models={"writer": writer}, refuse_secrets=True))
    result = orchestrator.run()
    found = [(each.secret, each.is_refused) for each in events(orchestrator, SecretFound)]
    assert (result.status, result.by_id["one"].failures, found) == ("completed", 1, [("openai", True)])
    assert "holds what must stay secret (openai): leave it out" in prompts[1]


def test_both_candidates_of_a_dual_run_and_the_reason(tmp_path: Path) -> None:
    """Both are kept and reported; the reviewer's reason, in the journal and in the decision record, shows no secret."""
    policy = Policy(default=Treatment(primary="writer", secondary="second", reviewer="reviewer", mode=Mode.DUAL_RUN))

    def reviewer(request: Request) -> str:
        return json.dumps({"choice": 2, "reason": f"{KEY} is used"}) if "comparison" in request.run_id else said()

    models = {"writer": lambda _: f"a {KEY}", "second": lambda _: f"b {KEY}", "reviewer": reviewer}
    orchestrator = locked(made(tmp_path, models=models, policy=policy))
    orchestrator.run()
    record = next((tmp_path / "studio/ADR").iterdir()).read_text()
    assert (len(events(orchestrator, SecretFound)), KEY[:8] in record, MARK in record) == (2, False, True)
    assert holding(tmp_path / "studio/STATE") == []
    assert audit(parse_export(exported(orchestrator))).findings == ()


def test_a_plan_that_holds_a_secret_is_refused(tmp_path: Path) -> None:
    """A plan is locked by its digest, so no word of it is altered: it is refused before anything is stored."""
    orchestrator = made(tmp_path, step("one"), step("two", task=f"use {KEY}"))
    with pytest.raises(SecretExposedError, match="step 2 of the plan, in task, holds the secret 'openai'"):
        orchestrator.review(YES, "Ada")
    assert (asyncio.run(orchestrator.journal.run_ids()), (tmp_path / "studio").exists()) == ((), False)
    fine = locked(made(tmp_path))
    with pytest.raises(SecretExposedError, match="the plan's goal holds"):
        fine.amend(read_plan({"plan_id": "p", "goal": KEY, "steps": [step("one")]}, "plan.json"), "why not")


def test_inputs_parameters_gates_and_people(tmp_path: Path) -> None:
    """An input's secret reaches no prompt, a parameter's no record, and whoever answers a gate sees neither."""
    seen: list[str] = []

    class Person:
        async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
            seen.append(prompt)
            return True

    def gate(question: Question) -> Decision:
        assert isinstance(question.gate, StepRequested)
        seen.append(question.gate.prompt)
        return Proceed()

    def writer(request: Request) -> str:
        seen.append(request.prompt)
        return "text"

    orchestrator = made(
        tmp_path,
        step("one", inputs=["CONTEXT/key.md"]),
        plan={"context_requirements": ["CONTEXT/key.md"]},
        models={"writer": GeneratorModel(writer, parameters={"key": KEY})},
        approver=Person(),
    )
    orchestrator.bus.answer(StepRequested, gate)
    orchestrator.studio.files.write("CONTEXT/key.md", f"The key is {KEY}.".encode())
    locked(orchestrator).run()
    assert [(KEY in text, f"The key is {MARK}." in text) for text in seen] == [(False, True), (False, True)]
    assert (KEY[:8] in exported(orchestrator), holding(tmp_path)) == (False, ["key.md"])


def test_what_interrupts_a_plan_shows_no_secret(tmp_path: Path) -> None:
    """Neither the error, nor its causes, nor the record of it."""

    def gone(_: Request) -> str:
        raise GeneratorUnavailableError(f"401 for {KEY}")

    orchestrator = locked(made(tmp_path, models={"writer": gone, "second": gone}))
    with pytest.raises(PlanInterruptedError, match=r"401 for \[redacted openai\]") as caught:
        orchestrator.run()
    chain: list[BaseException | None] = [caught.value]
    while chain[-1] is not None:
        chain.append(chain[-1].__cause__)
    assert [KEY[:8] in str(error) for error in chain] == [False] * len(chain)
    assert KEY[:8] not in exported(orchestrator)


def test_a_model_that_reviews_the_plan(tmp_path: Path) -> None:
    """What it says of the plan is recorded, and told where it is no review, without secrets."""
    orchestrator = made(tmp_path, models={"reviewer": told}, plan_reviewer="reviewer")
    orchestrator.review()
    assert (KEY[:8] in exported(orchestrator), MARK in exported(orchestrator)) == (False, True)
    other = made(tmp_path / "other", models={"reviewer": lambda _: KEY}, plan_reviewer="reviewer")
    with pytest.raises(ReviewError) as caught:
        other.review()
    assert (KEY[:8] in str(caught.value), KEY[:8] in exported(other)) == (False, False)


def test_amendments_and_abandonment(tmp_path: Path) -> None:
    """The reasons that people give are redacted, in the journal, in the decision record and in the trace."""
    orchestrator = locked(made(tmp_path))
    plan = {"plan_id": "p", "goal": "write more", "steps": [step("one")]}
    orchestrator.amend(read_plan(plan, "plan.json"), f"{KEY} was leaked")
    orchestrator.abandon(f"because of {KEY}")
    assert (KEY[:8] in exported(orchestrator), holding(tmp_path)) == (False, [])


def test_a_subscriber_that_fails_with_a_secret(tmp_path: Path) -> None:
    """What is noted of it shows no secret."""

    def observer(_: object) -> None:
        raise RuntimeError(KEY)

    orchestrator = made(tmp_path)
    orchestrator.bus.subscribe(observer, name="observer")
    locked(orchestrator).run()
    assert (KEY[:8] in exported(orchestrator), MARK in exported(orchestrator)) == (False, True)

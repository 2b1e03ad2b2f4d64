"""What holds in what a plan starts: required before anything is spent, recorded with each step and each evidence."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.errors import IsolationRefusedError
from orchestrator.export import export_json
from orchestrator.generators.command import CommandGenerator
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.checks import CommandCheck, Examination
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.gates import Evidence
from orchestrator.plan.plan import read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Policy, ReviewKind, Treatment
from orchestrator.process import CONTAINMENT
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS

APPROVED = json.dumps(
    {"status": "approved", "checklist": {"correctness": True, "security": True, "tests_passed": True}}
)
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
POLICY = Policy(default=Treatment(primary="writer", reviewer="reviewer"))


class OwnCheck:
    """A check of the host's own, which says nothing of isolation."""

    kind = ReviewKind.QA
    steps: tuple[str, ...] = ("two",)

    async def look(self, examination: Examination) -> Evidence:  # noqa: ARG002 -- the port's signature
        """Say that all is well."""
        return Evidence(kind=self.kind, command=("own",), exit_status=0, output=b"well")


def step(step_id: str) -> dict[str, Any]:
    """A step that is tested."""
    base = {"id": step_id, "role": "Writer", "task": "write", "risk_level": "low", "test_plan": ["test it"]}
    return {**base, "acceptance_criteria": ["it is written"]}


def callable_model(text: str) -> Any:
    """A model in this process."""
    return lambda _: text


def program(text: str) -> Any:
    """A model that is a contained program."""
    return CommandGenerator((sys.executable, "-c", f"print({text!r}, end='')"), launcher=CONTAINMENT)


def made(place: Path, **options: Any) -> PlanOrchestrator:
    """An orchestrator of two tested steps, its plan locked."""
    plan = {"plan_id": "p", "goal": "write", "steps": [step("one"), step("two")]}
    contained = CommandCheck("qa", ("{python}", "-c", "print('1 passed')"), steps=("one",), launcher=CONTAINMENT)
    texts = {"writer": "text", "StrongReasoningModel": "text", "reviewer": APPROVED}
    models = {name: callable_model(text) for name, text in texts.items()}
    orchestrator = PlanOrchestrator(
        read_plan(plan, "plan.json"),
        policy=POLICY,
        studio=ContextBus(root=place),
        has_release_manager=False,
        **{"checks": [contained, OwnCheck()], "models": models, **options},
    )
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    return orchestrator


def test_what_holds_a_check_is_recorded(tmp_path: Path) -> None:
    """The step's second record has it with its limits; each evidence has level, backend and what nothing holds back."""
    journal = MemoryJournal()
    orchestrator = made(tmp_path, journal=journal)
    orchestrator.run()
    one, two = (journal.streams[run_id].records[1].event for run_id in ("p.one", "p.two"))
    assert isinstance(one, IsolationEstablished)
    assert isinstance(two, IsolationEstablished)
    assert (one.generator, one.evaluator) == (IN_PROCESS, CONTAINMENT.isolation)
    assert two.evaluator == IN_PROCESS
    kept = json.loads((tmp_path / "RUNS/p/step_one_qa.1.1.json").read_text())["isolation"]
    assert (kept["level"], kept["backend"], tuple(kept["not_enforced"])) == (
        CONTAINMENT.isolation.level,
        CONTAINMENT.isolation.backend,
        CONTAINMENT.isolation.not_enforced,
    )
    assert json.loads((tmp_path / "RUNS/p/step_two_qa.1.1.json").read_text())["isolation"] is None
    assert orchestrator.studio.read_evidence("RUNS/p/step_one_qa.1.1.json").isolation is not None
    assert audit(parse_export(asyncio.run(export_json(journal, "p")))).findings == ()


def test_what_holds_a_model_is_recorded_where_it_works(tmp_path: Path) -> None:
    """The run that calls a model's program says of it what its step does: what holds the program."""
    texts = {"writer": "text", "StrongReasoningModel": "text", "reviewer": APPROVED}
    journal = MemoryJournal()
    orchestrator = made(tmp_path, models={name: program(text) for name, text in texts.items()}, journal=journal)
    assert orchestrator.run().status == "completed"
    runs = ("p.one", "p.one.primary-1", "p.one.review-1")
    held = [journal.streams[run_id].records[1].event for run_id in runs]
    assert [each.generator.label for each in held if isinstance(each, IsolationEstablished)] == [
        CONTAINMENT.isolation.label
    ] * 3
    assert audit(parse_export(asyncio.run(export_json(journal, "p")))).findings == ()


@pytest.mark.parametrize(("model", "said"), [(callable_model, "the model writer"), (program, "the qa check")])
def test_too_little_isolation_is_refused(tmp_path: Path, model: Callable[[str], Any], said: str) -> None:
    """What is required has to hold for models and checks; with less no step begins, and the plan stays locked."""
    texts = {"writer": "text", "StrongReasoningModel": "text", "reviewer": APPROVED}
    models = {name: model(text) for name, text in texts.items()}
    everywhere = CommandCheck("qa", ("{python}", "-c", "print('1 passed')"), launcher=CONTAINMENT)
    orchestrator = made(tmp_path, require_isolation="basic", checks=[everywhere, OwnCheck()], models=models)
    with pytest.raises(IsolationRefusedError, match=f"{said} runs with isolation none"):
        orchestrator.run()
    assert orchestrator.status().state == "locked"


def test_too_little_isolation_of_an_eval_suite_is_refused(tmp_path: Path) -> None:
    """The suite of a conformance run is held to what is required before the plan begins."""
    models = {name: program("text") for name in ("writer", "StrongReasoningModel", "reviewer")}
    suites = {"one": lambda _: {"is good": True}}
    orchestrator = made(tmp_path, require_isolation="basic", checks=[], models=models, suites=suites)
    plan = {"plan_id": "p", "goal": "write", "steps": [{**step("one"), "test_plan": [], "executor": "conformance"}]}
    orchestrator.amend(read_plan(plan, "plan.json"), "it is to conform")
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    with pytest.raises(IsolationRefusedError, match="the eval suite of step one runs with isolation none"):
        orchestrator.run()
    assert orchestrator.status().state == "locked"


def test_enough_isolation(tmp_path: Path) -> None:
    """Where all that is started is held as required, the plan is executed, and its records say what was required."""
    texts = {"writer": "text", "StrongReasoningModel": "text", "reviewer": APPROVED}
    models = {name: program(text) for name, text in texts.items()}
    everywhere = CommandCheck("qa", ("{python}", "-c", "print('1 passed')"), launcher=CONTAINMENT)
    journal = MemoryJournal()
    orchestrator = made(tmp_path, require_isolation="basic", checks=[everywhere], models=models, journal=journal)
    result = orchestrator.run()
    second = journal.streams["p.one"].records[1].event
    assert isinstance(second, IsolationEstablished)
    assert (result.status, second.required, second.evaluator.level) == ("completed", "basic", "basic")
    assert audit(parse_export(asyncio.run(export_json(journal, "p")))).findings == ()

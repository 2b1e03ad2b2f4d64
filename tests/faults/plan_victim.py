"""A plan of eight steps with scripted models and a real test suite, and a process that kills itself while it runs it.

    python plan_victim.py DIRECTORY PLACE

PLACE is `before:N` or `after:N` (the N-th append), `model:N` (inside the N-th call of a model), or `nowhere`; with
`slow:N` nothing is killed, and each call of a model takes N ms. The plan is amended where a review blocks it, and goes
on until it is completed. Every call of a model is logged, synced, in DIRECTORY.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import attrs

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.outcome import PlanBlockedResult, PlanReport
from orchestrator.plan.plan import Plan, read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import ReviewKind
from orchestrator.ports import Request
from orchestrator.process import CONTAINMENT
from orchestrator_events.journal import Batch, Journal

MODELS = ("Claude", "Codex (GPT)", "Gemini", "GLM", "StrongReasoningModel", "Reviewer")


def step(step_id: str, **fields: Any) -> dict[str, Any]:
    """A step of the plan's file."""
    base = {
        "id": step_id,
        "role": "Implementer",
        "task": f"Do {step_id}.",
        "acceptance_criteria": [f"{step_id} is done"],
        "risk_level": "low",
        "rollback_plan": f"Undo {step_id}.",
    }
    return {**base, **fields}


PLAN: dict[str, Any] = {
    "plan_id": "shop",
    "goal": "Sell things.",
    "context_requirements": ["CONTEXT/context.md"],
    "steps": [
        step(
            "design", role="Architect", task_type="architecture", inputs=["CONTEXT/context.md"], outputs=["design.md"]
        ),
        step("prices", task_type="implementation", depends_on=["design"], inputs=["design.md"], outputs=["prices.py"]),
        step("payment", risk_level="high", depends_on=["design"], inputs=["design.md"], outputs=["payment.py"]),
        step("screens", role="Designer", task_type="ux", depends_on=["design"], outputs=["screens.md"]),
        step("naming", ambiguity=True, depends_on=["design"], outputs=["naming.md"]),
        step(
            "cart",
            task_type="test",
            depends_on=["prices", "payment"],
            inputs=["prices.py", "payment.py"],
            outputs=["cart.py"],
        ),
        step("manual", depends_on=["screens", "naming"], inputs=["naming.md"], outputs=["manual.md"]),
        step("launch", role="Planner", task_type="planning", depends_on=["cart", "manual"], outputs=["launch.md"]),
    ],
}
PRICES = "def price(count):\n    return 3 * count\n"
PAYMENT = "def pay(amount):\n    return {'paid': amount}\n"
CART = (
    "from payment import pay\nfrom prices import price\n\n\ndef total(count):\n    return pay(price(count))['paid']\n"
)
WRONG_CART = "def total(count):\n    return count\n"
TEST_PRICES = """import unittest
from prices import price
class Prices(unittest.TestCase):
    def test_three_each(self):
        self.assertEqual(price(2), 6)
"""
TEST_CART = """import unittest
from cart import total
class Cart(unittest.TestCase):
    def test_all_together(self):
        self.assertEqual(total(2), 6)
"""
SCAN = """import pathlib, sys
bad = [path.name for path in pathlib.Path('.').glob('*.py') if path.name != 'scan.py' and 'eval(' in path.read_text()]
print('scanned', 'found', bad)
sys.exit(bool(bad))
"""
CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
SECURITY = {
    "inputs_validated": True,
    "access_controlled": True,
    "injection_prevented": True,
    "secrets_protected": True,
    "data_protected": True,
    "dependencies_checked": True,
}


def decided(status: str, **fields: Any) -> str:
    """A reviewer's answer."""
    return json.dumps({"status": status, "checklist": CHECKLIST, "security_checklist": SECURITY, **fields})


def fenced(text: str) -> str:
    """A file as models give it."""
    return f"Here it is.\n\n```python\n{text}```\n"


ANSWERS: Mapping[str, str] = {
    "design.primary-1": "# Design\n",
    "prices.primary-1": fenced("def price(count):\n    return count * 3  # draft\n"),
    "prices.post-pass-1": fenced(PRICES),
    "payment.primary-1": fenced(PAYMENT),
    "screens.primary-1": "# Screens, not reviewed\n",
    "screens.primary-2": "# Screens\n",
    "naming.primary-1": "# Names of Claude\n",
    "naming.secondary-1": "# Names of Codex\n",
    "naming.comparison-1": json.dumps({"choice": 2, "reason": "shorter"}),
    "cart.primary-1": fenced(WRONG_CART),
    "cart.primary-2": "I cannot do this: ```python\n",
    "cart.primary-3": fenced(CART),
    "manual.primary-1": "# Manual\n",
    "launch.primary-1": "# Launch on Friday\n",
    "launch.primary-2": "# Launch on Monday\n",
    "screens.review-1": decided("changes_requested", required_fixes=["say what the buttons do"]),
    "manual.review-1": decided("approved_with_conditions", conditions=["add an index"]),
    "manual-followup.primary-1": "# Manual with an index\n",
    "launch.review-1": decided("blocked", diff_risk_notes=["nobody is there on Friday"]),
    "release-manager.primary-1": "# Announce, then roll out\n",
}
"""What the models answer, by the end of the run's id; a review that is not here approves."""


def answered(run_id: str) -> str:
    """The answer of a model in this run."""
    place = run_id.removeprefix("shop.")
    if place in ANSWERS:
        return ANSWERS[place]
    if ".review-" in place or place.startswith("plan-review"):
        return decided("approved")
    raise AssertionError(f"the script has no answer for {place}")


Call = Callable[[Request], str]


def models(watch: Callable[[str], None] = lambda _: None) -> dict[str, Call]:
    """Every model of the policy; each answers by the script."""

    def model(name: str) -> Call:
        def call(request: Request) -> str:
            watch(request.run_id)
            return answered(request.run_id)

        call.__qualname__ = name
        return call

    return {name: model(name) for name in MODELS}


def checks() -> tuple[CommandCheck, ...]:
    """What QA and security run."""
    unit = "{python} -m unittest -v"
    return (
        CommandCheck(
            ReviewKind.QA,
            f"{unit} test_prices",
            suite={"test_prices.py": TEST_PRICES},
            steps=("prices",),
            launcher=CONTAINMENT,
        ),
        CommandCheck(
            ReviewKind.QA, f"{unit} test_cart", suite={"test_cart.py": TEST_CART}, steps=("cart",), launcher=CONTAINMENT
        ),
        CommandCheck(ReviewKind.SECURITY, "{python} scan.py", suite={"scan.py": SCAN}, launcher=CONTAINMENT),
    )


def plan() -> Plan:
    """The plan as it is drafted."""
    return read_plan(PLAN, "plan.json")


def amended_plan() -> Plan:
    """The plan after the review had blocked it."""
    steps = [{**each, "task": "Launch on a Monday."} if each["id"] == "launch" else each for each in PLAN["steps"]]
    return read_plan({**PLAN, "steps": steps}, "plan.json")


def approval() -> Review:
    """A person's yes to the plan."""
    return Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))


def shop(
    root: Path, journal: Journal, watch: Callable[[str], None] = lambda _: None, **options: Any
) -> PlanOrchestrator:
    """The orchestrator of the plan."""
    (root / "CONTEXT").mkdir(parents=True, exist_ok=True)
    (root / "CONTEXT" / "context.md").write_text("A shop.\n")
    settings: dict[str, Any] = {"models": models(watch), "checks": checks(), **options}
    return PlanOrchestrator(settings.pop("plan", plan()), journal=journal, studio=ContextBus(root=root), **settings)


def gone_on(orchestrator: PlanOrchestrator) -> PlanReport:
    """One command after another, as the lifecycle says, until the plan can go on no more; amended where blocked."""
    while True:
        try:
            standing = orchestrator.status()
        except Exception:  # noqa: BLE001 -- it was never drafted
            standing = orchestrator.review(approval(), "Ada")
        if standing.plan.by_id["launch"].task == "Launch on a Monday.":
            orchestrator.plan = amended_plan()
        match standing.next_command:
            case "plan review":
                orchestrator.review(approval(), "Ada")
            case "plan lock":
                orchestrator.lock()
            case "plan run" | "plan resume":
                orchestrator.resume()
            case "plan amend":
                assert isinstance(standing, PlanBlockedResult)
                orchestrator.amend(amended_plan(), "the review blocked the launch")
            case _:
                return orchestrator.resume()  # which lays the studio out, if a kill came before that


class WatchedJournal(SqliteJournal):
    """A journal that is killed before or after its n-th append."""

    def __init__(self, path: Path, kill: Callable[[str, int], None]) -> None:
        super().__init__(path)
        self.kill = kill
        self.appends = 0

    async def append(self, batch: Batch) -> None:
        """Append, and die where it is said."""
        self.appends = number = self.appends + 1
        self.kill("before", number)
        await super().append(batch)
        self.kill("after", number)  # steps append side by side, so the count may have gone on


@attrs.define
class Calls:
    """Logs every call of a model, and is killed in the n-th."""

    path: Path
    kill: Callable[[str, int], None]
    count: int = 0
    lock: Lock = attrs.Factory(Lock)

    def __call__(self, run_id: str) -> None:
        """Log it."""
        with self.lock:  # models are called in threads
            self.count += 1
            number = self.count
            with self.path.open("a") as file:
                file.write(run_id + "\n")
                file.flush()
                os.fsync(file.fileno())
        self.kill("model", number)


def killer(place: str) -> Callable[[str, int], None]:
    """A function that kills the process at `place`."""
    kind, _, number = place.partition(":")

    def here(what: str, count: int) -> None:
        if (kind, what) == ("slow", "model"):
            time.sleep(int(number) / 1_000)
        elif what == kind and count == int(number or 0):
            os.kill(os.getpid(), signal.SIGKILL)

    return here


def main() -> None:
    """Go on with the plan, or die."""
    directory, place = Path(sys.argv[1]), sys.argv[2]
    kill = killer(place)
    with WatchedJournal(directory / "journal.sqlite", kill) as journal:
        report = gone_on(shop(directory / "studio", journal, Calls(directory / "calls", kill)))
        told = {"status": report.status, "steps": {each.id: each.state for each in report.steps}}
        print(json.dumps({**told, "appends": journal.appends}))


if __name__ == "__main__":
    main()

"""Real specs with their own eval suites, judged from a process that the candidate is not in.

The data are third-party and lie beside the checkout; `ORCHESTRATOR_DATA` names another place.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from orchestrator.candidate import Candidate
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.evaluators.separate import SeparateEvaluator
from orchestrator.ports import Evaluator, Submission
from orchestrator.spec import MergedSpec
from orchestrator_events.verdict import CaseStatus

DATA = Path(os.environ.get("ORCHESTRATOR_DATA") or Path(__file__).parents[3] / "shared" / "data")
AT_ONCE = 2

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        not (DATA / "dev.jsonl").is_file(), reason=f"no data in {DATA}: set ORCHESTRATOR_DATA to their folder"
    ),
]

ALARM = """
import signal
import pytest

def late(*_):
    raise TimeoutError("the case took too long")

@pytest.fixture(autouse=True)
def alarm():
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, {seconds})
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
"""
"""Gives each case its own time; a case that is cut off interrupts the call that the candidate is in."""

SHARED = {"exercism/concept/cater-waiter": ("sets_categories_data.py",)}
"""Files of a suite that its candidates import."""

Outcome = tuple[tuple[str, ...], tuple[tuple[str, CaseStatus], ...]]


def items() -> dict[str, dict[str, Any]]:
    """The items by id; none when the data are not there."""
    path = DATA / "dev.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return {item["id"]: item for item in found}


ITEMS = items()


def evaluators(item: dict[str, Any]) -> tuple[Evaluator, Evaluator]:
    """The item's suite beside the candidate and apart from it."""
    suite = item["eval"]
    options: dict[str, Any] = {
        "suite": {**suite["files"], "case_alarm.py": ALARM.format(seconds=suite["case_timeout_s"])},
        "candidate_file": suite["candidate"],
        "extra_environment": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        "seconds": suite["timeout_s"],
    }
    arguments = (suite["entry"], "-p", "case_alarm")
    pytest_command = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}", *arguments)
    return (
        CommandEvaluator(pytest_command, **options),
        SeparateEvaluator(arguments=arguments, shared=SHARED.get(item["id"], ()), **options),
    )


async def outcome(evaluator: Evaluator, item: dict[str, Any], text: str) -> Outcome:
    """Which cases passed, and what became of the others."""
    verdict = await evaluator.evaluate(
        Submission(
            run_id="run",
            attempt=1,
            candidate=Candidate(text),
            spec=MergedSpec(name=item["id"], intent=item["intent"]),
            language="python",
            seconds=None,
        )
    )
    passed = tuple(result.id for result in verdict.results if result.status is CaseStatus.PASSED)
    others = ((result.id, result.status) for result in verdict.results if result.status is not CaseStatus.PASSED)
    return tuple(sorted(passed)), tuple(sorted(others))


async def both(item: dict[str, Any], room: asyncio.Semaphore) -> list[tuple[Outcome, Outcome]]:
    """The outcomes of every candidate of an item, beside the judge and apart from it."""
    texts = [item["reference"], item["wrong_first"], *(wrong["text"] for wrong in item["wrong_more"])]
    beside, apart = evaluators(item)
    found = []
    for text in texts:
        async with room:
            found.append((await outcome(beside, item, text), await outcome(apart, item, text)))
    return found


@pytest.fixture(scope="module")
def outcomes() -> dict[str, list[tuple[Outcome, Outcome]]]:
    """Those of every item, a few at a time."""

    async def main() -> dict[str, list[tuple[Outcome, Outcome]]]:
        room = asyncio.Semaphore(AT_ONCE)
        found = await asyncio.gather(*(both(item, room) for item in ITEMS.values()))
        return dict(zip(ITEMS, found, strict=True))

    return asyncio.run(main())


@pytest.mark.parametrize("name", list(ITEMS) or ["(no data)"])
def test_same_cases_pass(outcomes: dict[str, list[tuple[Outcome, Outcome]]], name: str) -> None:
    """Every candidate passes the same cases, by the same ids, whether the judge is beside it or apart."""
    assert [apart[0] for _, apart in outcomes[name]] == [beside[0] for beside, _ in outcomes[name]]


def test_all_items_end_the_same(outcomes: dict[str, list[tuple[Outcome, Outcome]]]) -> None:
    """All forty references conform under both judges, and no wrong candidate but the two that are right does."""
    differing = [name for name, found in outcomes.items() if any(one[0] != other[0] for one, other in found)]
    conforming = [name for name, found in outcomes.items() if is_right(found[0][1])]
    right_at_once = [name for name, found in outcomes.items() if is_right(found[1][1])]
    marked = [name for name, item in ITEMS.items() if "seed-already-passes" in item["meta"]["tags"]]
    assert (len(outcomes), differing, len(conforming), right_at_once) == (40, [], 40, marked)


def is_right(found: Outcome) -> bool:
    """Whether something passed and nothing but skipped cases did not."""
    return bool(found[0]) and all(status is CaseStatus.SKIPPED for _, status in found[1])

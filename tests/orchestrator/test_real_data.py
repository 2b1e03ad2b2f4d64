"""Real specs with their own eval suites, and recorded sessions of real models, through the real evaluator.

The data are third-party and lie beside the checkout; `ORCHESTRATOR_DATA` names another place.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest

from orchestrator import Budget, EvalCase, Example, Exhausted, MergedSpec, Orchestrator, Passed, RunReport
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.testing import RecordedGenerator, ScriptedGenerator
from orchestrator_events.verdict import CaseStatus

DATA = Path(os.environ.get("ORCHESTRATOR_DATA") or Path(__file__).parents[3] / "shared" / "data")
AT_ONCE = 4

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
"""Gives each case of a pytest suite its own time, so that the others are judged when one hangs."""

ASSERTS = """
import json, signal, sys

def late(*_):
    raise TimeoutError("the case took too long")

def judged(suite, number):
    scope = {}
    signal.setitimer(signal.ITIMER_REAL, suite["seconds"])
    try:
        exec("from candidate import *\\nfrom candidate import " + suite["function"], scope)
        exec(suite["prelude"], scope)
        scope[suite["param"]] = scope[suite["function"]]
        exec(suite["asserts"][number], scope)
        return "passed", ""
    except AssertionError as error:
        return "failed", str(error)
    except TimeoutError as error:
        return "timed out", str(error)
    except BaseException as error:
        return "error", repr(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

signal.signal(signal.SIGALRM, late)
with open("suite.json") as file:
    suite = json.load(file)
cases = []
for number in range(len(suite["asserts"])):
    status, message = judged(suite, number)
    cases.append({"id": f"assert-{number + 1}", "status": status, "message": message})
with open(sys.argv[1], "w") as file:
    json.dump({"protocol": "orchestrator.report/1", "cases": cases}, file)
"""
"""Runs each assert of a script as a case of its own, with its own time."""

Result = TypeVar("Result")


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of one file of the data; none when it is not there."""
    path = DATA / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


ITEMS = {item["id"]: item for item in lines("dev.jsonl")}
SESSIONS = {session["session"]: session for session in lines("traces_dev.jsonl")}
NOTHING = ["(no data)"]


def spec_of(item: dict[str, Any], cases: Iterable[str] = ()) -> MergedSpec:
    """An item's spec, with the cases that are expected."""
    return MergedSpec(
        name=item["id"],
        intent=item["intent"],
        interface=item["interface"],
        examples=tuple(
            Example(f"example {number}", f"{each['call']} == {each['expect']}")
            for number, each in enumerate(item["examples"], 1)
        ),
        evals=tuple(EvalCase(name=case) for case in cases),
    )


def pytest_suite(item: dict[str, Any], *, has_alarm: bool = True, **options: Any) -> CommandEvaluator:
    """An item's own suite, run by pytest."""
    suite = item["eval"]
    alarm = {"case_alarm.py": ALARM.format(seconds=suite["case_timeout_s"])} if has_alarm else {}
    command = ["{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}", suite["entry"]]
    options.setdefault("seconds", suite["timeout_s"])
    return CommandEvaluator(
        [*command, "-p", "case_alarm"] if has_alarm else command,
        suite={**suite["files"], **alarm},
        candidate_file=suite["candidate"],
        extra_environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        **options,
    )


def assert_suite(item: dict[str, Any]) -> CommandEvaluator:
    """An item's asserts, each a case."""
    suite = item["eval"]
    content = {**suite["cases"], "function": suite["function"], "seconds": suite["case_timeout_s"]}
    return CommandEvaluator(
        ["{python}", "judge.py", "{report}"],
        suite={"judge.py": ASSERTS, "suite.json": json.dumps(content)},
        candidate_file=suite["candidate"],
        report="json",
        report_file="report.json",
        seconds=60,
    )


def together(works: dict[str, Callable[[], Awaitable[Result]]]) -> dict[str, Result]:
    """The results of all works, a few under way at a time."""

    async def main() -> dict[str, Result]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(work: Callable[[], Awaitable[Result]]) -> Result:
            async with room:
                return await work()

        results = await asyncio.gather(*(one(work) for work in works.values()))
        return dict(zip(works, results, strict=True))

    return asyncio.run(main())


# Specs with their suites


@attrs.frozen
class Climb:
    """What became of an item: the cases that its reference pins, and the run that climbs to it."""

    pinned: tuple[str, ...]
    result: Passed | Exhausted


async def climb(item: dict[str, Any]) -> Climb:
    """Pin the expected cases with a trusted run of the reference, then climb from the wrong ones to it."""
    evaluator = pytest_suite(item)
    generator = ScriptedGenerator([item["reference"]])
    reference = Orchestrator(generator=generator, evaluator=evaluator, budget=Budget(attempts=1))
    trusted = await reference.arun(spec_of(item))
    pinned = trusted.history[0].passed
    texts = [item["wrong_first"], *(wrong["text"] for wrong in item["wrong_more"]), item["reference"]]
    made = Orchestrator(
        generator=ScriptedGenerator(texts), evaluator=evaluator, budget=Budget(attempts=len(texts), repeats=None)
    )
    return Climb(pinned, await made.arun(spec_of(item, pinned)))


@pytest.fixture(scope="module")
def climbs() -> dict[str, Climb]:
    """Every item's climb, a few at a time."""
    return together({name: lambda item=item: climb(item) for name, item in ITEMS.items()})  # type: ignore[misc]


@pytest.mark.parametrize("name", list(ITEMS) or NOTHING)
def test_climb_to_the_reference(climbs: dict[str, Climb], name: str) -> None:
    """The run passes at the attempt the data predict, with the passed counts the data measured on the way."""
    item, outcome = ITEMS[name], climbs[name]
    measured = item["meta"]["measured"]
    if "seed-already-passes" in item["meta"]["tags"]:
        passed = [measured["cases"]]
    else:
        wrong = [measured["wrong_first"].get("passed", 0), *(each["passed"] for each in item["wrong_more"])]
        passed = [*wrong, len(outcome.pinned)]
    result = outcome.result
    assert (result.status, [len(each.passed) for each in result.history]) == ("passed", passed)


@pytest.mark.parametrize("name", list(ITEMS) or NOTHING)
def test_cases_that_hang_are_cut_off_alone(climbs: dict[str, Climb], name: str) -> None:
    """As many cases of the first wrong one are cut off as the data measured; the other cases are judged."""
    late = [case.id for case in climbs[name].result.history[0].failing if "took too long" in case.message]
    assert len(late) == ITEMS[name]["meta"]["measured"]["wrong_first"].get("timeout", 0)


@pytest.mark.parametrize("name", list(ITEMS) or NOTHING)
def test_feedback_of_real_suites(climbs: dict[str, Climb], name: str) -> None:
    """Every retry prompt carries the whole spec and each failing case, and stays of bounded size."""
    spec, history = spec_of(ITEMS[name]), climbs[name].result.history
    for last, attempt in pairwise(history):
        prompt = attempt.prompt
        absent = [section.title for section in spec.sections if section.text not in prompt]
        unsaid = [case.id for case in last.failing if f"- {case.id}\n" not in prompt]
        assert (absent, unsaid) == ([], [])
        assert len(prompt) < sum(len(section.text) for section in spec.sections) + 60_000


def test_all_items_are_there(climbs: dict[str, Climb]) -> None:
    """Forty items: two conform at once, thirty-eight after at least one failure."""
    at_once = [name for name, outcome in climbs.items() if outcome.result.attempts == 1]
    assert (len(climbs), len(at_once)) == (40, 2)


# Recorded sessions


async def replay(session: dict[str, Any]) -> RunReport:
    """A session's attempts, played back against the asserts."""
    item = session["inline_item"]
    texts = [session["candidates"][each] for each in session["attempts"]]
    cases = [f"assert-{number + 1}" for number in range(len(item["eval"]["cases"]["asserts"]))]
    made = Orchestrator(
        generator=RecordedGenerator.of(texts),
        evaluator=assert_suite(item),
        budget=Budget(attempts=len(texts), repeats=None),
    )
    return await made.arun(spec_of(item, cases))


@pytest.fixture(scope="module")
def replays() -> dict[str, RunReport]:
    """Every session's replay, a few at a time."""
    return together({name: lambda each=each: replay(each) for name, each in SESSIONS.items()})  # type: ignore[misc]


@pytest.mark.parametrize("name", list(SESSIONS) or NOTHING)
def test_replay_of_a_session(replays: dict[str, RunReport], name: str) -> None:
    """A recorded session conforms where it did, passes as many cases at each attempt, and has the same
    best.
    """
    expected, result = SESSIONS[name]["expected"], replays[name]
    assert result.closest is not None
    assert {
        "conforms_at": result.attempts if isinstance(result, Passed) else None,
        "passed_per_attempt": [len(each.passed) for each in result.history],
        "status_per_attempt": ["passed" if each.is_conforming else "failed" for each in result.history],
        "best_attempt_first": result.closest.number,
        "total_cases": len(result.history[0].passed) + len(result.history[0].failing),
    } == expected


def test_identical_candidates_of_sessions_are_judged_once(replays: dict[str, RunReport]) -> None:
    """In each session every distinct candidate is evaluated once, however often it came."""
    reused = {
        name: sum(entry["reused_from"] > 0 for entry in each.as_json()["history"]) for name, each in replays.items()
    }
    assert reused == {name: len(each["attempts"]) - len({*each["attempts"]}) for name, each in SESSIONS.items()}


# Suites that hang as a whole


async def hanging(pinned: Iterable[str], budget: Budget, seconds: float) -> Passed | Exhausted:
    """An item whose wrong program never ends, in a suite that gives no case a time of its own."""
    item = ITEMS["quixbugs/bitcount"]
    made = Orchestrator(
        generator=ScriptedGenerator([item["wrong_first"], item["reference"]]),
        evaluator=pytest_suite(item, has_alarm=False, seconds=seconds),
        budget=budget,
    )
    return await made.arun(spec_of(item, pinned))


def test_suite_that_hangs_is_stopped_and_the_run_goes_on(climbs: dict[str, Climb]) -> None:
    """A suite that outlasts its own time is killed: every case is timed out, the next attempt passes."""
    pinned = climbs["quixbugs/bitcount"].pinned
    result = asyncio.run(hanging(pinned, Budget(attempts=2), seconds=3.0))
    first = result.history[0]
    assert [(case.id, case.status) for case in first.failing] == [
        (case, CaseStatus.TIMED_OUT) for case in sorted(pinned)
    ]
    assert [len(each.passed) for each in result.history] == [0, 9]


def test_suite_that_hangs_is_stopped_by_the_budget(climbs: dict[str, Climb]) -> None:
    """A suite that outlasts the run's time is killed with it, and the run is exhausted."""
    pinned = climbs["quixbugs/bitcount"].pinned
    result = asyncio.run(hanging(pinned, Budget(attempts=2, seconds=0.05), seconds=60))
    assert isinstance(result, Exhausted)
    assert (result.limit, result.history) == ("seconds", ())

"""Every path that generator, evaluator and gates can send a run along, walked with the real driver."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import attrs
import pytest

from orchestrator import (
    Budget,
    EvaluationError,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Request,
    RunCancelledError,
    RunInterruptedError,
    Submission,
    Verdict,
)
from orchestrator.journal import MemoryJournal
from orchestrator_events import Decision, Deny, EvaluationRequested, GenerationRequested, Proceed, RefinementRequested
from orchestrator_events.record import Record
from orchestrator_states.catalogue import LIFECYCLES, lifecycle

SPEC = MergedSpec(name="model", intent="Anything.")
GATES = (GenerationRequested, EvaluationRequested, RefinementRequested)
ATTEMPTS = 3
FAILS: dict[str, bool | str] = {"a": True, "b": "wrong"}
PASSES: dict[str, bool | str] = {"a": True, "b": True}
STATUS = {"passed": ("success", "completed"), "exhausted": ("incomplete", "completed")}


@attrs.define
class Oracle:
    """Answers each question with the next choice of a path, and the first one where the path ends."""

    path: tuple[int, ...]
    asked: list[int] = attrs.Factory(list[int])
    """How many answers each question had."""

    def choose(self, options: int) -> int:
        """One of `options` answers."""
        position = len(self.asked)
        self.asked.append(options)
        return self.path[position] if position < len(self.path) else 0

    def next_paths(self) -> Iterator[tuple[int, ...]]:
        """The paths that differ from this one first at a question that it did not settle."""
        taken = self.path + (0,) * (len(self.asked) - len(self.path))
        for position in range(len(self.path), len(self.asked)):
            for other in range(1, self.asked[position]):
                yield (*taken[:position], other)


@attrs.frozen
class World:
    """Generator, evaluator and gates that do whatever the oracle chooses."""

    oracle: Oracle

    async def generate(self, request: Request) -> str:
        """A new candidate, the same one, no answer, or gone for good."""
        match self.oracle.choose(4):
            case 0:
                return f"candidate {request.attempt}"
            case 1:
                return "the same"
            case 2:
                raise OSError("no answer")
            case _:
                raise GeneratorUnavailableError("gone")

    async def evaluate(self, _: Submission) -> Verdict:
        """Fails, passes, or breaks."""
        match self.oracle.choose(3):
            case 0:
                return Verdict.of(FAILS)
            case 1:
                return Verdict.of(PASSES)
            case _:
                raise EvaluationError("the suite broke")

    def decide(self, _: object) -> Decision:
        """Yes or no."""
        return Deny("no") if self.oracle.choose(2) else Proceed()


async def walked(oracle: Oracle, *, attempts: int) -> list[Record]:
    """One run along a path, resumed once when it is left open."""
    journal, world = MemoryJournal(), World(oracle)
    budget = Budget(attempts=attempts)
    made = Orchestrator(generator=world.generate, evaluator=world.evaluate, journal=journal, budget=budget)
    for gate in GATES:
        made.bus.answer(gate, world.decide)
    with suppress(RunInterruptedError, RunCancelledError):
        try:
            await made.arun(SPEC, run_id="m")
        except RunInterruptedError:
            await made.aresume("m")
    return [entry.record async for entry in journal.read("m")]


def bracketed(records: list[Record]) -> list[list[Record]]:
    """The records by invocation, each of which begins with `execution:start`."""
    found: list[list[Record]] = []
    for record in records:
        if record.event.name == "execution:start":
            found.append([])
        found[-1].append(record)
    return found


def test_every_path_is_bracketed_and_legal() -> None:
    """On each path: markers once and last in each invocation, the right status, no attempt past the limit."""
    todo: list[tuple[int, ...]] = [()]
    ends: set[str] = set()
    paths = 0
    while todo:
        oracle = Oracle(todo.pop())
        records = asyncio.run(walked(oracle, attempts=ATTEMPTS))
        todo += oracle.next_paths()
        paths += 1
        for invocation in bracketed(records):
            names = [record.event.name for record in invocation]
            assert names[-2:] == ["orchestrator:complete", "execution:end"], oracle
            assert (names.count("orchestrator:complete"), names.count("execution:end")) == (1, 1), oracle
            state, complete, end = invocation[-1].target, invocation[-2].event, invocation[-1].event
            told = (complete.status, end.status)  # type: ignore[attr-defined]  # the markers have one
            assert told == STATUS.get(state, ("incomplete", "error")), oracle
        assert [record.sequence for record in records] == list(range(1, len(records) + 1))
        assert sum(record.event.name == "prompt:ready" for record in records) <= ATTEMPTS
        ends.add(records[-1].target)
    assert ends == {"passed", "exhausted", "cancelled", "generating", "evaluating"}
    assert paths > 700


@pytest.mark.parametrize("name", list(LIFECYCLES))
def test_every_lifecycle_has_no_dead_end(name: str) -> None:
    """From each state that can be reached some resting state can be, and every resting state is reached."""
    table = lifecycle(name)
    moves = {(source, row.target) for row in table.rows for source in row.sources}

    def reached(start: str) -> set[str]:
        found, frontier = {start}, [start]
        while frontier:
            here = frontier.pop()
            fresh = {target for source, target in moves if source == here} - found
            found |= fresh
            frontier += fresh
        return found

    assert reached(table.initial) == set(table.states)
    assert [state for state in table.states if not reached(state) & set(table.resting)] == []

"""Cancelling the task that awaits a run: at whatever point, the invocation ends in order and nothing is
bought.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any

import attrs
import pytest

from orchestrator import Budget, MergedSpec, Orchestrator
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.decision import Decision, Proceed
from orchestrator_events.execution import ExecutionEnd
from orchestrator_events.journal import Batch, Head
from orchestrator_events.question import Question
from orchestrator_events.record import Entry, Record
from orchestrator_events.run import (
    EvaluationRequested,
    GenerationAbandoned,
    GenerationRequested,
    RefinementRequested,
)

SPEC = MergedSpec(intent="Set x to 1.")


async def pause(times: int = 2) -> None:
    """Give the loop a few turns."""
    for _ in range(times):
        await asyncio.sleep(0)


@attrs.define
class SlowJournal:
    """A journal that takes a few turns of the loop before it stores, as a threaded one does."""

    kept: MemoryJournal = attrs.Factory(MemoryJournal)
    stored: list[Batch] = attrs.Factory(list[Batch])

    async def append(self, batch: Batch) -> None:
        """Store in a task of its own, so that a cancelled caller does not stop it."""
        await asyncio.shield(asyncio.create_task(self.store(batch)))

    async def store(self, batch: Batch) -> None:
        """Store after a while."""
        await pause(3)
        await self.kept.append(batch)
        self.stored.append(batch)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """As the journal that keeps."""
        return self.kept.hold(run_id)

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """What was stored."""
        return self.kept.read(run_id, after)

    async def head(self, run_id: str) -> Head:
        """What was stored."""
        return await self.kept.head(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """What was stored."""
        return await self.kept.run_ids()


async def slow_answer(request: Any) -> str:
    """A new candidate, after a while."""
    await pause()
    return f"candidate {request.attempt}"


async def slow_failure(_: Any) -> dict[str, bool]:
    """A failing verdict, after a while."""
    await pause()
    return {"case": False}


async def slow_yes(_: Question) -> Decision:
    """Allow it, after a while."""
    await pause()
    return Proceed()


async def slow_look(_: Record) -> None:
    """Watch, taking a while."""
    await pause(1)


def engine(seen: RecordingSubscriber, **options: Any) -> Orchestrator:
    """An orchestrator all of whose parts take a few turns of the loop."""
    made = Orchestrator(
        generator=ScriptedGenerator([slow_answer], "repeat"),
        evaluator=ScriptedEvaluator([slow_failure], "repeat"),
        budget=Budget(attempts=2),
        **options,
    )
    for gate in (GenerationRequested, EvaluationRequested, RefinementRequested):
        made.bus.answer(gate, slow_yes)
    made.bus.subscribe(slow_look)
    made.bus.subscribe(seen)
    return made


async def cancelled_after(turns: int, made: Orchestrator) -> bool:
    """Start a run, cancel it after so many turns of the loop; whether it was cancelled."""
    task = asyncio.create_task(made.arun(SPEC, run_id="r"))
    await pause(turns)
    task.cancel()
    try:
        await asyncio.wait_for(task, 5)
    except asyncio.CancelledError:
        return True
    return False


@pytest.mark.parametrize("journal", [MemoryJournal, SlowJournal])
def test_cancelled_at_every_turn(journal: type[MemoryJournal | SlowJournal]) -> None:
    """Wherever it is cancelled, the run ends with its markers committed, gapless and once, and re-raises."""
    ends = set()
    for turns in range(1, 150):
        seen, store = RecordingSubscriber(), journal()
        made = engine(seen, journal=store)

        async def main(turns: int, made: Orchestrator, store: Any) -> tuple[bool, list[Record]]:
            was_cancelled = await cancelled_after(turns, made)
            return was_cancelled, [entry.record async for entry in store.read("r")]

        was_cancelled, records = asyncio.run(main(turns, made, store))
        names = [record.event.name for record in records]
        assert (turns, [record.sequence for record in records]) == (turns, list(range(1, len(records) + 1)))
        assert (turns, names[0], *names[-2:]) == (
            turns,
            "execution:start",
            "orchestrator:complete",
            "execution:end",
        )
        assert (turns, names.count("orchestrator:complete"), names.count("execution:end")) == (turns, 1, 1)
        end = records[-1].event
        assert isinstance(end, ExecutionEnd)
        is_over = records[-1].target == "exhausted"
        assert (turns, end.status) == (turns, "completed" if is_over else "cancelled")
        assert was_cancelled or is_over
        ends.add(records[-1].target)
    assert ends == {"generating", "evaluating", "refining", "exhausted"}


def test_call_in_flight_is_charged() -> None:
    """A generator call that was cut off is recorded as abandoned and charged its whole reservation."""
    seen, begun = RecordingSubscriber(), asyncio.Event()

    async def hang(_: object) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    made = Orchestrator(
        generator=ScriptedGenerator([hang]), evaluator=ScriptedEvaluator([]), parameters={"max_tokens": 9}
    )
    made.bus.subscribe(seen)

    async def main() -> None:
        task = asyncio.create_task(made.arun(SPEC))
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    (abandoned,) = seen.events(GenerationAbandoned)
    assert (abandoned.charge.output_tokens, abandoned.charge.estimated) == (9, True)


@pytest.mark.parametrize("answer", ["an answer", OSError("cut off")], ids=["answers", "raises"])
@pytest.mark.parametrize("place", ["generator", "evaluator"])
def test_effect_that_swallows_the_cancellation_is_the_last_one(place: str, answer: object) -> None:
    """When what is under way swallows the cancellation, no further call is made to generator or evaluator."""
    begun = asyncio.Event()

    async def swallow(_: object) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if isinstance(answer, Exception):
                raise answer from None
        return "candidate" if place == "generator" else {"case": False}

    generator = ScriptedGenerator([swallow if place == "generator" else "x", slow_answer], "repeat")
    evaluator = ScriptedEvaluator([swallow if place == "evaluator" else slow_failure], "repeat")
    seen = RecordingSubscriber()
    made = Orchestrator(generator=generator, evaluator=evaluator)
    made.bus.subscribe(seen)

    async def main() -> None:
        task = asyncio.create_task(made.arun(SPEC))
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert (len(generator.requests), len(evaluator.submissions)) == (1, int(place == "evaluator"))
    assert seen.names[-2:] == ("orchestrator:complete", "execution:end")


def test_effect_that_never_gives_way_is_left_behind() -> None:
    """A call that ignores its cancellation for ever does not keep the run: it ends without it."""
    begun, released = asyncio.Event(), asyncio.Event()

    async def stubborn(_: object) -> str:
        begun.set()
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "late"

    seen = RecordingSubscriber()
    made = Orchestrator(generator=ScriptedGenerator([stubborn]), evaluator=ScriptedEvaluator([]))
    made.bus.subscribe(seen)

    async def main() -> None:
        task = asyncio.create_task(made.arun(SPEC))
        await begun.wait()
        task.cancel()
        try:
            await task
        finally:
            released.set()
            await pause(5)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(main())
    assert seen.names[-3:] == ("generation:abandoned", "orchestrator:complete", "execution:end")


def test_cancelled_before_it_began() -> None:
    """A run that is cancelled before its first turn leaves nothing behind."""
    seen = RecordingSubscriber()
    assert asyncio.run(cancelled_after(0, engine(seen))) is True
    assert seen.records == []


def test_time_limit_of_the_host() -> None:
    """`asyncio.timeout` around a run works as the host expects: TimeoutError, after the run has ended in
    order.
    """
    seen = RecordingSubscriber()

    async def hang(_: object) -> str:
        await asyncio.Event().wait()
        return ""

    made = Orchestrator(generator=ScriptedGenerator([hang]), evaluator=ScriptedEvaluator([]))
    made.bus.subscribe(seen)

    async def main() -> None:
        async with asyncio.timeout(0.02):
            await made.arun(SPEC)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert seen.names[-1] == "execution:end"

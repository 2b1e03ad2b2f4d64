"""The host's own parts at their worst: subscribers, gates, approvers and journals that raise, hang or
refuse.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import attrs
import pytest

from orchestrator import (
    Approver,
    Budget,
    Bus,
    MergedSpec,
    Orchestrator,
    RunCancelledError,
    RunInterruptedError,
    RunReport,
)
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events import bus as bus_module
from orchestrator_events.decision import AskUser, Decision, DecisionTaken, Deny, Inject, Modify, Proceed
from orchestrator_events.errors import JournalError
from orchestrator_events.event import Gate
from orchestrator_events.execution import (
    ApprovalAnswered,
    ApprovalRequested,
    ExecutionCancelled,
    SubscriberFailed,
)
from orchestrator_events.journal import Batch, Head
from orchestrator_events.question import Question
from orchestrator_events.record import Entry, Record
from orchestrator_events.run import (
    EvaluationRequested,
    GenerationRequested,
    GenerationStarted,
    RefinementRequested,
)

SPEC = MergedSpec(intent="Set x to 1.")
NAMES = [
    "execution:start",
    "isolation:established",
    "prompt:ready",
    "generation:started",
    "candidate:generated",
    "attempt:failed",
    "prompt:refined",
    "prompt:ready",
    "generation:started",
    "candidate:generated",
    "attempt:passed",
    "orchestrator:complete",
    "execution:end",
]
"""A run that fails once and then passes, nobody in its way."""
GATES = [GenerationRequested, EvaluationRequested, RefinementRequested]


def engine(**options: Any) -> Orchestrator:
    """An orchestrator whose first candidate fails and whose second one passes."""
    options.setdefault("generator", ScriptedGenerator(["bad", "good"]))
    return Orchestrator(evaluator=ScriptedEvaluator([{"case": "no"}, {"case": True}]), **options)


def names_of(report: RunReport) -> list[str]:
    """Wire names of a run's records."""
    return [record.event.name for record in report.records]


def test_quiet_run() -> None:
    """With nobody in its way the run is these thirteen records."""
    assert names_of(engine().run(SPEC)) == NAMES


# Subscribers


@pytest.mark.parametrize("event", sorted(set(NAMES)))
def test_subscriber_that_raises_at_one_event(event: str) -> None:
    """An observer that raises never breaks a run: its failure is noted once, the others see everything."""
    seen, bus = RecordingSubscriber(), Bus()

    def fragile(record: Record) -> None:
        if record.event.name == event:
            raise LookupError(event)

    bus.subscribe(fragile, name="fragile")
    bus.subscribe(seen)
    result = engine(bus=bus).run(SPEC)
    noted = [record.event for record in result.records if isinstance(record.event, SubscriberFailed)]
    assert [name for name in names_of(result) if name != "subscriber:failed"] == NAMES
    assert seen.records == list(result.records)
    expected = SubscriberFailed(subscriber="fragile", event=event, error=f"LookupError: {event}")
    assert noted == ([] if event in NAMES[-3:] else [expected])


@pytest.mark.parametrize("kind", ["plain", "async", "cancels itself", "raises in its own task"])
def test_subscriber_that_always_raises(kind: str) -> None:
    """Nor does one that raises at every record, in whichever way."""

    def plain(_: Record) -> None:
        raise ValueError("always")

    async def failing(_: Record) -> None:
        await asyncio.sleep(0)
        raise ValueError("always")

    async def cancelling(_: Record) -> None:
        raise asyncio.CancelledError

    async def self_cancelling(_: Record) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)

    receivers: dict[str, Callable[[Record], Awaitable[None] | None]] = {
        "plain": plain,
        "async": failing,
        "cancels itself": self_cancelling,
        "raises in its own task": cancelling,
    }
    bus = Bus()
    bus.subscribe(receivers[kind], name="fragile")
    result = engine(bus=bus).run(SPEC)
    assert (result.status, names_of(result).count("subscriber:failed")) == ("passed", 1)


def test_subscriber_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """An async observer that never ends is left behind after its limit and noted."""
    monkeypatch.setattr(bus_module, "ASYNC_OBSERVER_LIMIT_S", 0.01)
    bus = Bus()

    async def hang(_: Record) -> None:
        await asyncio.Event().wait()

    bus.subscribe(hang, GenerationStarted, name="slow")
    result = engine(bus=bus).run(SPEC)
    (noted,) = [record.event for record in result.records if isinstance(record.event, SubscriberFailed)]
    assert (result.status, noted.subscriber, noted.event) == ("passed", "slow", "generation:started")


def test_subscriber_that_closes_itself_and_subscribes_others() -> None:
    """Subscriptions may change while a record is delivered; nothing is lost and nobody is called twice."""
    bus, late = Bus(), RecordingSubscriber()
    calls: list[str] = []

    def once(record: Record) -> None:
        calls.append(record.event.name)
        subscription.close()
        bus.subscribe(late)

    subscription = bus.subscribe(once)
    result = engine(bus=bus).run(SPEC)
    assert (calls, late.names[-1]) == (["execution:start"], "execution:end")
    assert result.status == "passed"


# Gates


def answering(gate: type[Gate], decide: Callable[[Question], Awaitable[Decision] | Decision]) -> Bus:
    """A bus with one responder called `policy`."""
    bus = Bus()
    bus.answer(gate, decide, name="policy")
    return bus


@pytest.mark.parametrize("gate", GATES)
def test_gate_that_denies(gate: type[Gate]) -> None:
    """A denial ends the run in the state it is in, as cancelled, with the reason; nothing stays reserved."""
    asked: list[Question] = []

    def deny(question: Question) -> Decision:
        asked.append(question)
        return Deny("not on a Sunday")

    made = engine(bus=answering(gate, deny))
    with pytest.raises(RunCancelledError, match="not on a Sunday") as caught:
        made.run(SPEC)
    denial = ExecutionCancelled(reason="not on a Sunday", is_denial=True)
    assert [record.event for record in caught.value.report.records][-3] == denial
    assert (caught.value.report.state, asked[0].ledger.holds) == ("cancelled", {})


def raise_it(_: Question) -> Decision:
    """Raise."""
    raise ZeroDivisionError("oops")


def answer_nonsense(_: Question) -> Any:
    """Answer what is no decision."""
    return "yes"


async def cancel_itself(_: Question) -> Decision:
    """Pretend to be cancelled."""
    raise asyncio.CancelledError


async def hang_at_gate(_: Question) -> Decision:
    """Never answer."""
    await asyncio.Event().wait()
    return Proceed()


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("decide", [raise_it, answer_nonsense, cancel_itself, hang_at_gate])
def test_gate_that_breaks(
    gate: type[Gate], decide: Callable[[Question], Decision], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A responder that raises, hangs or answers nonsense denies: nothing is done that nobody allowed."""
    monkeypatch.setattr(bus_module, "RESPONDER_LIMIT_S", 0.01)
    with pytest.raises(RunCancelledError, match="policy") as caught:
        engine(bus=answering(gate, decide)).run(SPEC)
    assert names_of(caught.value.report)[-3:] == [
        "execution:cancelled",
        "orchestrator:complete",
        "execution:end",
    ]


def test_gate_that_modifies_and_one_that_injects() -> None:
    """A change is not lost because another subscriber injects, both are sent, and both are recorded by
    name.
    """
    bus = Bus()
    bus.answer(GenerationRequested, lambda _: Modify({"max_tokens": 64}), name="saver")
    bus.answer(GenerationRequested, lambda _: Inject("Mind the time zone.", "system"), name="memory")
    bus.answer(GenerationRequested, lambda _: Inject("Use UTC.", "user"), name="memory")
    made = engine(bus=bus)
    result = made.run(SPEC)
    assert isinstance(made.generator, ScriptedGenerator)
    request = made.generator.requests[0]
    started = [record.event for record in result.records if isinstance(record.event, GenerationStarted)]
    first, second = request.prompt.index("Mind the time zone."), request.prompt.index("Use UTC.")
    assert (request.max_tokens, first < second, result.history[0].prompt) == (64, True, request.prompt)
    assert started[0].decisions == (
        DecisionTaken("saver", "modify", "max_tokens"),
        DecisionTaken("memory", "inject", "Mind the time zone."),
        DecisionTaken("memory", "inject", "Use UTC."),
    )


@pytest.mark.parametrize(
    "data",
    [
        {"attempt": 9},
        {"key": "other"},
        {"max_tokens": "64"},
        {"max_tokens": True},
        {"prompt": None},
        {"nothing": 1},
    ],
    ids=str,
)
def test_gate_that_modifies_what_it_may_not(data: dict[str, object]) -> None:
    """A change of a field that is not modifiable, or to a wrong type, denies."""
    with pytest.raises(RunCancelledError, match="policy"):
        engine(bus=answering(GenerationRequested, lambda _: Modify(data))).run(SPEC)


@attrs.frozen
class Person:
    """An approver that answers one thing."""

    answer: Callable[[], Awaitable[Any]]

    async def approve(self, run_id: str, prompt: str) -> bool:
        """Answer, raise or hang."""
        assert (bool(run_id), prompt) == (True, "Buy it?")
        return bool(await self.answer()) if self.answer is not truthy else await self.answer()


async def yes() -> bool:
    """Agree."""
    return True


async def no() -> bool:
    """Refuse."""
    return False


async def truthy() -> Any:
    """Answer what is not exactly True."""
    return "yes"


async def broken() -> bool:
    """Raise."""
    raise ConnectionError("no person")


async def silent() -> bool:
    """Never answer."""
    await asyncio.Event().wait()
    return True


@pytest.mark.parametrize("gate", GATES)
def test_approval(gate: type[Gate]) -> None:
    """Where a gate asks for a person, a yes lets the run go on; question and answer are recorded before
    the act.
    """
    made = engine(bus=answering(gate, lambda _: AskUser("Buy it?")), approver=Person(yes))
    result = made.run(SPEC)
    events = [record.event for record in result.records]
    place = events.index(ApprovalRequested(gate=gate.name, prompt="Buy it?"))
    assert events[place + 1] == ApprovalAnswered(gate=gate.name, is_approved=True, answer="yes")
    assert result.status == "passed"


@pytest.mark.parametrize(
    ("approver", "answer"),
    [
        (None, "nobody to ask"),
        (Person(no), "no"),
        (Person(truthy), "no"),
        (Person(broken), "ConnectionError: no person"),
        (Person(silent), "no answer in time"),
    ],
    ids=["nobody", "no", "truthy", "broken", "silent"],
)
@pytest.mark.parametrize("gate", GATES)
def test_no_approval(gate: type[Gate], approver: Approver | None, answer: str) -> None:
    """Silence, an error, nobody and anything but True are a no, and the no is recorded."""
    budget = Budget(seconds=0.03) if answer == "no answer in time" else Budget()
    made = engine(bus=answering(gate, lambda _: AskUser("Buy it?")), approver=approver, budget=budget)
    with pytest.raises(RunCancelledError, match="not approved: Buy it") as caught:
        made.run(SPEC)
    answers = [record.event for record in caught.value.report.records if isinstance(record.event, ApprovalAnswered)]
    assert answers == [ApprovalAnswered(gate=gate.name, is_approved=False, answer=answer)]


# Journals


@attrs.define
class FailingJournal:
    """Keeps what it is given until its n-th append, which raises."""

    at: int
    error: Exception
    appends: int = 0
    kept: MemoryJournal = attrs.Factory(MemoryJournal)

    async def append(self, batch: Batch) -> None:
        """Keep the batch, or raise from the n-th one on."""
        self.appends += 1
        if self.appends >= self.at:
            raise self.error
        await self.kept.append(batch)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """As the journal that keeps."""
        return self.kept.hold(run_id)

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """What was kept."""
        return self.kept.read(run_id, after)

    async def head(self, run_id: str) -> Head:
        """What was kept."""
        return await self.kept.head(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """What was kept."""
        return await self.kept.run_ids()


APPENDS = 5
"""Two an attempt and the closing one."""


@pytest.mark.parametrize("error", [JournalError("disk full"), OSError(28, "No space left on device")], ids=repr)
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
def test_journal_that_fails(at: int, error: Exception) -> None:
    """A store that fails stops the run at once: nothing is bought after it, nothing unrecorded is shown."""
    seen, journal = RecordingSubscriber(), FailingJournal(at, error)
    made = engine(journal=journal)
    made.bus.subscribe(seen)
    with pytest.raises(RunInterruptedError, match=r"disk full|No space left"):
        made.run(SPEC, run_id="r")

    async def kept() -> list[Record]:
        return [entry.record async for entry in journal.read("r")]

    assert isinstance(made.generator, ScriptedGenerator)
    assert asyncio.run(kept()) == seen.records
    assert len(made.generator.requests) == sum(name == "generation:started" for name in seen.names)


def test_journal_is_not_needed_for_long() -> None:
    """A run that fails once and then passes appends five times: two an attempt and the closing one."""
    journal = FailingJournal(99, JournalError("never"))
    engine(journal=journal).run(SPEC)
    assert journal.appends == APPENDS


def test_run_id_that_is_taken() -> None:
    """A second run under the same id is refused by the journal before anything is bought."""
    journal = MemoryJournal()
    engine(journal=journal).run(SPEC, run_id="r")
    second = engine(journal=journal)
    with pytest.raises(RunInterruptedError, match="JournalConflictError"):
        second.run(SPEC, run_id="r")
    assert isinstance(second.generator, ScriptedGenerator)
    assert second.generator.requests == []

"""The bus: recorder first, observers in order and isolated, subscriptions that come and go."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Iterator

import pytest
import structlog
from structlog.testing import capture_logs

from orchestrator_events import (
    EVERYTHING,
    AttemptPassed,
    Batch,
    BudgetExhausted,
    Bus,
    EventError,
    ExecutionFailed,
    GenerationRequested,
    Journal,
    JournalError,
    Proceed,
    Question,
    Record,
    SubscriberFailed,
    record_history,
)
from orchestrator_events import bus as bus_module

EXHAUSTED = BudgetExhausted(limit="tokens", detail="10 of 10 used")
FAILED = ExecutionFailed(reason="OSError: disk")

MakeRecord = Callable[..., Record]


@pytest.fixture
def bus() -> Bus:
    """A bus without recorder and guard."""
    return Bus()


@pytest.fixture
def silent() -> Iterator[None]:
    """Keeps the lines about failing subscribers out of the output."""
    with capture_logs():
        yield
    structlog.reset_defaults()


def publish(bus: Bus, journal: Journal, *records: Record) -> list[SubscriberFailed]:
    """Publish one batch in a loop of its own."""
    return asyncio.run(bus.publish(Batch(records[0].run_id, records), journal))


def test_observers_are_called_by_priority_then_in_order_of_subscription(
    bus: Bus, journal: Journal, record: MakeRecord
) -> None:
    """Lower priorities come first; among equals the first to connect, be it ours, a plain one or for all."""
    called: list[str] = []

    def plain(*_sender: object, **_named: object) -> None:
        called.append("plain")

    bus.subscribe(lambda _: called.append("late"), BudgetExhausted, priority=1)
    bus.subscribe(lambda _: called.append("one"), BudgetExhausted)
    bus.subscribe(lambda _: called.append("all"))
    bus.signal("budget:exhausted").connect(plain)
    bus.subscribe(lambda _: called.append("two"), BudgetExhausted)
    bus.subscribe(lambda _: called.append("early"), priority=-1)
    publish(bus, journal, record(EXHAUSTED))
    assert called == ["early", "one", "all", "plain", "two", "late"]


def test_every_observer_sees_a_record_before_any_sees_the_next(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """A batch is delivered record by record."""
    seen: list[tuple[str, int]] = []
    bus.subscribe(lambda record: seen.append(("a", record.sequence)))
    bus.subscribe(lambda record: seen.append(("b", record.sequence)))
    publish(bus, journal, record(EXHAUSTED, sequence=1), record(FAILED, sequence=2))
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]


def test_an_observer_gets_the_events_it_named(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """Several events may be named; others do not arrive, and a record arrives once."""
    seen: list[Record] = []
    bus.subscribe(seen.append, BudgetExhausted, AttemptPassed)
    exhausted, failed = record(EXHAUSTED), record(FAILED, sequence=2)
    publish(bus, journal, exhausted, failed)
    assert seen == [exhausted]


def test_a_plain_connection_gets_blinker_s_arguments(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """A host that knows blinker connects to the signal; the sender is the run id."""
    seen: list[tuple[object, Record]] = []

    def receive(sender: object, record: Record) -> None:
        seen.append((sender, record))

    bus.signal("budget:exhausted").connect(receive)
    bus.signal("budget:exhausted").connect(receive, sender="r1")
    published = record(EXHAUSTED)
    publish(bus, journal, published)
    assert seen == [("r1", published)]


def test_a_weak_connection_ends_with_its_receiver(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """Blinker's references are weak: a receiver nobody holds is gone, and nothing fails because of it."""
    seen: list[object] = []

    class Host:
        def receive(self, sender: object, **named: object) -> None:
            seen.append((sender, named))

    host = Host()
    bus.signal("budget:exhausted").connect(host.receive)
    first = publish(bus, journal, record(EXHAUSTED))
    del host
    gc.collect()
    second = publish(bus, journal, record(EXHAUSTED, sequence=2))
    assert (len(seen), first, second) == (1, [], [])


def test_sending_on_a_signal_reaches_our_subscriptions(bus: Bus, record: MakeRecord) -> None:
    """A subscription is a receiver like any other for a host that sends by itself."""
    seen: list[Record] = []
    bus.subscribe(seen.append, BudgetExhausted)
    sent = record(EXHAUSTED)
    bus.signal("budget:exhausted").send("r1", record=sent)
    assert seen == [sent]


@pytest.mark.usefixtures("silent")
def test_a_raising_observer_is_reported_and_stops_nobody(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """The others are served, the batch goes on, and the failures come back as events to note."""

    def broken(record: Record) -> None:
        raise KeyError(record.sequence)

    seen: list[int] = []
    bus.subscribe(broken, name="broken")
    bus.subscribe(lambda record: seen.append(record.sequence))
    failures = publish(bus, journal, record(EXHAUSTED), record(FAILED, sequence=2))
    assert seen == [1, 2]
    assert failures == [
        SubscriberFailed(subscriber="broken", event="budget:exhausted", error="KeyError: 1"),
        SubscriberFailed(subscriber="broken", event="execution:failed", error="KeyError: 2"),
    ]


def test_a_failure_is_logged_where_the_host_configured_it(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """With structlog configured, the line is an event with the subscriber, the record and the error."""

    def broken(_record: Record) -> None:
        raise OSError("gone")

    bus.subscribe(broken, name="broken")
    with capture_logs() as lines:
        publish(bus, journal, record(EXHAUSTED))
    structlog.reset_defaults()
    assert lines == [
        {
            "event": "subscriber failed",
            "log_level": "warning",
            "subscriber": "broken",
            "on": "budget:exhausted",
            "error": "OSError: gone",
        }
    ]


def test_a_failure_is_not_printed_where_nothing_is_configured(
    bus: Bus,
    journal: Journal,
    record: MakeRecord,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unconfigured structlog would write to the host's stdout; the line goes to logging instead."""

    def broken(_record: Record) -> None:
        raise OSError("gone")

    bus.subscribe(broken, name="broken")
    publish(bus, journal, record(EXHAUSTED))
    assert capsys.readouterr().out == ""
    assert caplog.record_tuples == [
        ("orchestrator", logging.WARNING, "broken failed at budget:exhausted: OSError: gone")
    ]


@pytest.mark.parametrize("form", ["function", "object", "lambda", "plain"])
def test_async_observers_are_awaited(form: str, bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """Whatever gives something to await is awaited before the next record, however it is written."""
    seen: list[Record] = []

    async def receive(record: Record) -> None:
        await asyncio.sleep(0)
        seen.append(record)

    class Receiver:
        async def __call__(self, record: Record) -> None:
            await receive(record)

    async def plain(_sender: object, record: Record) -> None:
        await receive(record)

    match form:
        case "function":
            bus.subscribe(receive)
        case "object":
            bus.subscribe(Receiver())
        case "lambda":
            bus.subscribe(lambda record: receive(record._replace()))
        case _:
            bus.signal("budget:exhausted").connect(plain)
    published = record(EXHAUSTED)
    failures = publish(bus, journal, published)
    assert (seen, failures) == ([published], [])


@pytest.mark.usefixtures("silent")
def test_a_limit_is_the_subscriptions_own(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """One may wait less than the usual 5 s, and one for as long as it takes."""
    done = asyncio.Event()
    ended: list[str] = []

    async def patient(_record: Record) -> None:
        asyncio.get_running_loop().call_later(0.02, done.set)
        await done.wait()
        ended.append("patient")

    async def hasty(_record: Record) -> None:
        await asyncio.Event().wait()

    bus.subscribe(patient, name="patient", seconds=None)
    bus.subscribe(hasty, name="hasty", seconds=0.01)
    failures = publish(bus, journal, record(EXHAUSTED))
    late = SubscriberFailed(subscriber="hasty", event="budget:exhausted", error="TimeoutError: no end within 0.01 s")
    assert (ended, failures) == (["patient"], [late])


@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize("swallows", [False, True])
def test_an_async_observer_that_outlasts_its_limit_is_left_behind(
    swallows: bool, bus: Bus, journal: Journal, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cancelled; even one that will not be cancelled keeps no run waiting."""
    monkeypatch.setattr(bus_module, "ASYNC_OBSERVER_LIMIT_S", 0.01)
    done = asyncio.Event()

    async def slow(_record: Record) -> None:
        try:
            await done.wait()
        except asyncio.CancelledError:
            if not swallows:
                raise
            await done.wait()

    async def scenario() -> list[SubscriberFailed]:
        bus.subscribe(slow, name="slow")
        failures = await bus.publish(Batch("r1", (record(EXHAUSTED),)), journal)
        done.set()
        await asyncio.sleep(0)
        return failures

    expected = SubscriberFailed(subscriber="slow", event="budget:exhausted", error="TimeoutError: no end within 0.01 s")
    assert asyncio.run(scenario()) == [expected]


@pytest.mark.usefixtures("silent")
def test_an_observer_that_cancels_itself_does_not_cancel_the_run(
    bus: Bus, journal: Journal, record: MakeRecord
) -> None:
    """A receiver's own CancelledError is a failure of the receiver."""

    async def cancelled(_record: Record) -> None:
        raise asyncio.CancelledError

    bus.subscribe(cancelled, name="cancelled")
    expected = SubscriberFailed(
        subscriber="cancelled", event="budget:exhausted", error="EventError: it cancelled itself"
    )
    assert publish(bus, journal, record(EXHAUSTED)) == [expected]


def test_cancelling_the_publisher_cancels_the_observer_it_waits_for(
    bus: Bus, journal: Journal, record: MakeRecord
) -> None:
    """The run's own cancellation passes through, and no task is left."""
    ended: list[str] = []

    async def waiting(_record: Record) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def scenario() -> bool:
        bus.subscribe(waiting)
        publishing = asyncio.ensure_future(bus.publish(Batch("r1", (record(EXHAUSTED),)), journal))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        publishing.cancel()
        await asyncio.wait([publishing])
        await asyncio.sleep(0)
        return publishing.cancelled()

    assert (asyncio.run(scenario()), ended) == (True, ["cancelled"])


def test_the_recorder_stores_before_anyone_sees(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """When an observer is called, its record is in the journal already."""
    order: list[str] = []

    async def recorder(batch: Batch, into: Journal) -> None:
        await record_history(batch, into)
        order.append("stored")

    bus.recorder = recorder
    bus.subscribe(lambda _: order.append("seen"), priority=-100)
    publish(bus, journal, record(EXHAUSTED), record(FAILED, sequence=2))
    assert (order, asyncio.run(journal.run_ids())) == (["stored", "seen", "seen"], ("r1",))


def test_a_recorder_that_cannot_store_stops_the_delivery(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """Nothing unrecorded is shown, and the failure reaches the run."""

    async def full(_batch: Batch, _journal: Journal) -> None:
        raise JournalError("disk full")

    seen: list[Record] = []
    bus.recorder = full
    bus.subscribe(seen.append)
    with pytest.raises(JournalError, match="disk full"):
        publish(bus, journal, record(EXHAUSTED))
    assert seen == []


def test_a_run_filter_lets_one_run_through(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """With a run id, only that run's records arrive; it is blinker's sender."""
    seen: list[str] = []
    bus.subscribe(lambda record: seen.append(record.run_id), run_id="r2")
    for run_id in ("r1", "r2", "r3"):
        publish(bus, journal, record(EXHAUSTED, run_id))
    assert seen == ["r2"]


def test_a_closed_subscription_receives_nothing(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """Leaving the `with` block closes; so does close(), any number of times."""
    seen: list[int] = []
    with bus.subscribe(lambda record: seen.append(record.sequence)) as subscription:
        publish(bus, journal, record(EXHAUSTED, sequence=1))
    publish(bus, journal, record(EXHAUSTED, sequence=2))
    subscription.close()
    publish(bus, journal, record(EXHAUSTED, sequence=3))
    assert seen == [1]


def test_a_run_leaves_nothing_on_the_bus(bus: Bus, journal: Journal, record: MakeRecord) -> None:
    """After many runs, each with a subscription of its own, the bus holds what it held after the first."""

    def sizes() -> list[tuple[str, int, int, int, int, int]]:
        return [
            (
                signal.name,
                len(signal.receivers),
                len(signal._by_sender),
                len(signal._by_receiver),
                len(signal._weak_senders),
                len(signal.order),
            )
            for signal in bus.signals.values()
        ]

    def run(number: int) -> None:
        run_id = f"run-{number}"
        with bus.subscribe(lambda _: None, run_id=run_id), bus.subscribe(lambda _: None, BudgetExhausted):
            publish(bus, journal, record(EXHAUSTED, run_id))

    run(0)
    first = sizes()
    for number in range(1, 50):
        run(number)
    assert sizes() == first


def test_a_receiver_that_connects_while_a_plan_is_made_is_not_forgotten(
    bus: Bus, journal: Journal, record: MakeRecord
) -> None:
    """Plans are shared between threads: one made from older connections is never kept over newer ones."""
    seen: list[str] = []
    made, connected = threading.Event(), threading.Event()
    signal = bus.signal("budget:exhausted")
    routes = signal.routes

    def slow_routes() -> list[bus_module.Route]:
        found = routes()
        made.set()
        connected.wait(5)
        return found

    signal.routes = slow_routes  # type: ignore[method-assign]  # holds the thread between reading and storing
    thread = threading.Thread(target=bus.plan, args=("budget:exhausted",))
    thread.start()
    made.wait(5)
    bus.subscribe(lambda _: seen.append("new"), BudgetExhausted)
    connected.set()
    thread.join()
    publish(bus, journal, record(EXHAUSTED))
    assert seen == ["new"]


def test_gates_are_not_delivered_to_those_who_subscribe_to_everything(
    bus: Bus, question: Callable[..., Question]
) -> None:
    """Everything means every record; a gate is none."""
    seen: list[object] = []
    bus.subscribe(seen.append)
    bus.signal(EVERYTHING).connect(lambda _, record: seen.append(record), weak=False)
    ruling = asyncio.run(bus.ask(question()))
    assert (seen, ruling.deny) == ([], None)


def test_facts_are_subscribed_to_and_gates_are_answered(bus: Bus) -> None:
    """The wrong method is refused with the right one's name."""
    with pytest.raises(EventError, match=r"generation:requested is a gate, which asks for a decision: use Bus\.answer"):
        bus.subscribe(print, GenerationRequested)  # type: ignore[arg-type]  # what is refused here
    with pytest.raises(EventError, match="attempt:passed is a fact event, which nobody can refuse"):
        bus.answer(AttemptPassed, lambda _: Proceed())  # type: ignore[arg-type]  # what is refused here


def test_a_misspelt_signal_is_refused(bus: Bus) -> None:
    """A name that will never be sent is an error, not a subscription that stays silent."""
    with pytest.raises(EventError, match="unknown event 'atempt:failed'"):
        bus.signal("atempt:failed")

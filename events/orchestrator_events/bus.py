"""The event bus: one recorder, then ordered and isolated observers; gates that may refuse an act.

Delivery has two stages. The recorder stores the batch; only when it has returned do the observers see it,
record by record, so that no subscriber ever sees what a crash could take back. An observer that raises, or an
async one that outlasts its limit, is logged and reported; it never breaks a run and never stops the others.

This is the only module that imports blinker. Its signals hold the connections, so a host's plain
`bus.signal("attempt:failed").connect(f)` works; what is ours is the delivery, since blinker calls receivers
in no defined order, lets the first that raises stop the rest, and costs 0.6 µs a receiver in bookkeeping. The
order of receivers is computed when one connects or leaves, not when a record is delivered.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Hashable, Iterator
from inspect import isawaitable, iscoroutinefunction
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar
from weakref import ref

import attrs
from blinker import ANY, Signal
from blinker.base import ANY_ID

from orchestrator_events.decision import PLAIN_YES, Decision, Deny, Ruling, fold, lawful
from orchestrator_events.errors import EventError
from orchestrator_events.event import Event, Fact, Gate, Live
from orchestrator_events.execution import SubscriberFailed
from orchestrator_events.journal import Batch, Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.patience import settled
from orchestrator_events.question import Guard, Question, Responder, guarded, last_word
from orchestrator_events.record import Record
from orchestrator_events.registry import event_class

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["EVERYTHING", "Bus", "Guard", "Observer", "Question", "Recorder", "Responder", "Subscription"]

EVERYTHING = "*"
"""Name of the signal that receives every record."""

ASYNC_OBSERVER_LIMIT_S = 5.0
RESPONDER_LIMIT_S = 30.0
USUAL = -1.0
"""Stands for the usual limit, the one above that fits."""

Receiver = TypeVar("Receiver", bound=Callable[..., Any])

Observer = Callable[[Record], Awaitable[None] | None]
Recorder = Callable[[Batch, Journal], Awaitable[None]]


@attrs.define(eq=False)
class Subscription:
    """One receiver on the bus until `close()`, which is also what leaving a `with` block does."""

    receiver: Callable[[Any], Any]
    subscriber: str
    priority: int
    signals: tuple[EventSignal, ...]
    seconds: float | None
    """How long an async receiver is awaited; None for as long as it takes."""

    def close(self) -> None:
        """Stop receiving; closing twice does nothing."""
        for signal in self.signals:
            signal.disconnect(self)

    def __call__(self, sender: object, record: Record) -> object:  # noqa: ARG002 -- blinker's signature
        """Blinker's way in: a host that sends on the signal itself reaches us too."""
        return self.receiver(record)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class EventSignal(Signal):
    """A blinker signal that knows the order of connection and tells its bus when a receiver comes or goes."""

    def __init__(self, name: str, numbers: Iterator[int], changed: Callable[[], None]) -> None:
        super().__init__(f"Records of {name}.")
        self.name = name
        self.numbers = numbers
        self.changed = changed
        self.order: dict[Hashable, int] = {}

    def connect(self, receiver: Receiver, sender: Any = ANY, weak: bool = True) -> Receiver:  # noqa: FBT001 -- blinker's signature
        """Connect as blinker does; the receiver is called as `receiver(run_id, record=record)`.

        At a gate, `record` is the Question and the receiver has to return a Decision.
        """
        connected = super().connect(receiver, sender, weak)
        self.order.setdefault(next(reversed(self.receivers)), next(self.numbers))
        self.changed()
        return connected

    def _disconnect(self, receiver_id: Hashable, sender_id: Hashable) -> None:
        # Blinker keeps an empty set for every receiver and sender it ever saw: a leak for each filtered run.
        senders = list(self._by_receiver.get(receiver_id, ()))
        super()._disconnect(receiver_id, sender_id)
        for sender in senders:
            if not self._by_sender.get(sender):
                self._by_sender.pop(sender, None)
        if not self._by_receiver.get(receiver_id):
            self._by_receiver.pop(receiver_id, None)
            self.receivers.pop(receiver_id, None)
            self.order.pop(receiver_id, None)
        self.changed()

    def routes(self) -> list[Route]:
        """The connected receivers, each with the run ids it wants (None for all) and when it connected."""
        found = []
        for receiver_id, receiver in list(self.receivers.items()):
            wanted = self._by_receiver.get(receiver_id, set())
            only = None if ANY_ID in wanted else frozenset(wanted)
            found.append(route_of(receiver, only, self.order.get(receiver_id, 0)))
        return found


@attrs.frozen(eq=False)
class Route:
    """One step of a delivery plan."""

    deliver: Callable[[Any], Any]
    only: frozenset[object] | None
    subscriber: str
    priority: int
    order: int
    seconds: float | None = USUAL

    def limit(self, usual: float) -> float | None:
        """How long an async receiver is awaited; None for as long as it takes."""
        return usual if self.seconds == USUAL else self.seconds

    def wants(self, run_id: str) -> bool:
        """Whether the receiver asked for this run."""
        return self.only is None or run_id in self.only


@attrs.define(eq=False)
class Bus:
    """Publishes records to subscribers and puts gates to those who may refuse.

    A bus belongs to an Orchestrator and outlives its runs; it keeps nothing about any run.
    """

    recorder: Recorder | None = None
    """The one subscriber that stores; a failure of it stops the run."""
    guard: Guard | None = None
    """The budget's voice at every gate: asked last, about the request as modified."""
    redact: Callable[[str], str] | None = None
    """Takes the host's secrets out of what an observer's error says, before it is logged."""
    signals: dict[str, EventSignal] = attrs.field(init=False, factory=dict)
    plans: dict[str, tuple[Route, ...]] = attrs.field(init=False, factory=dict)
    numbers: Iterator[int] = attrs.field(init=False, factory=lambda: count(1))

    def subscribe(
        self,
        receiver: Observer,
        *events: type[Fact | Live],
        run_id: str | None = None,
        priority: int = 0,
        name: str = "",
        seconds: float | None = USUAL,
    ) -> Subscription:
        """Have `receiver(record)` called for these events (none named: for all), lower priorities first.

        With `run_id`, only for that run. An async receiver is awaited for at most `seconds`, 5 unless stated; None
        sets no limit, and the run then waits for as long as it takes. Live events reach only those who name them,
        and only plain receivers. Raises EventError for a gate, which nothing records: `answer` it.
        """
        for event in events:
            if event.kind == "gate":
                raise EventError(f"{event.name} is a gate, which asks for a decision: use Bus.answer")
            if event.kind == "live" and iscoroutinefunction(receiver):
                raise EventError(f"{event.name} is live, and nobody waits for its receivers: pass a plain function")
        signals = tuple(self.signal(event.name) for event in events) or (self.signal(EVERYTHING),)
        subscription = Subscription(receiver, name or name_of(receiver), priority, signals, seconds)
        for signal in signals:
            signal.connect(subscription, ANY if run_id is None else run_id, weak=False)
        return subscription

    def answer(
        self,
        gate: type[Gate],
        responder: Responder,
        *,
        priority: int = 0,
        name: str = "",
        seconds: float | None = USUAL,
    ) -> Subscription:
        """Have `responder(question)` decide at this gate; one that raises or is silent for 30 s denies.

        It returns one decision, or a tuple of any number. One that returns anything else denies, too, and so does
        one that changes a field that is not `modifiable`. `seconds` is another limit in time, None is none.
        Raises EventError for a fact, which nobody can refuse: `subscribe` to it.
        """
        if gate.kind != "gate":
            raise EventError(f"{gate.name} is a {gate.kind} event, which nobody can refuse: use Bus.subscribe")
        signal = self.signal(gate.name)
        subscription = Subscription(responder, name or name_of(responder), priority, (signal,), seconds)
        signal.connect(subscription, weak=False)
        return subscription

    def signal(self, name: str) -> EventSignal:
        """The blinker signal of a wire name, or of EVERYTHING; raises EventError for an unknown name."""
        if name not in self.signals:
            if name != EVERYTHING:
                event_class(name)
            self.signals[name] = EventSignal(name, self.numbers, self.forget_plans)
        return self.signals[name]

    async def publish(self, batch: Batch, journal: Journal) -> list[SubscriberFailed]:
        """Record a batch, then show it to the observers; the observers' failures come back as events.

        Raises what the recorder raises: nothing unrecorded is ever shown. A cancellation ends the observer that is
        waited for, and is raised when the others have seen what is recorded: an end marker may be in it.
        """
        if self.recorder is not None:
            await self.recorder(batch, journal)
        failures: list[SubscriberFailed] = []
        cancellation: CancelledError | None = None
        for record in batch.records:
            name = record.event.name
            routes = self.plans.get(name)
            if routes is None:
                routes = self.plan(name)
            for route in routes:
                if route.only is not None and not route.wants(record.run_id):
                    continue
                try:
                    answer = route.deliver(record)
                    if answer is not None and isawaitable(answer):
                        await settled(answer, route.limit(ASYNC_OBSERVER_LIMIT_S))
                except CancelledError as error:
                    cancellation = error
                except Exception as error:  # noqa: BLE001 -- no observer's error may reach the run
                    failures.append(self.failure(route.subscriber, name, error))
        if cancellation is not None:
            raise cancellation
        return failures

    def failure(self, subscriber: str, event: str, error: Exception) -> SubscriberFailed:
        """Log what an observer raised, without the host's secrets, and make the event that notes it."""
        detail = f"{type(error).__name__}: {error}"
        return logged_failure(subscriber, event, detail if self.redact is None else self.redact(detail))

    def tell(self, record: Record) -> None:
        """Show something under way to those who subscribed to it; what they raise is logged and goes no further."""
        name = record.event.name
        for route in self.plans.get(name) or self.plan(name):
            if route.wants(record.run_id):
                try:
                    route.deliver(record)
                except Exception as error:  # noqa: BLE001 -- no observer's error may reach the run
                    self.failure(route.subscriber, name, error)

    async def ask(self, question: Question) -> Ruling:
        """Put a gate to its responders in order, fold their answers, and let the guard have the last word."""
        ruling = PLAIN_YES
        name = question.gate.name
        routes = self.plans.get(name)
        if routes is None:
            routes = self.plan(name)
        if routes:
            wanted = [route for route in routes if route.wants(question.run_id)]
            ruling = fold([pair for route in wanted for pair in await decisions_of(route, question)])
        if ruling.deny is not None or self.guard is None:
            return ruling
        return last_word(self.guard, question, ruling)

    def unopposed(self, gate: Gate, ledger: Ledger) -> Ruling | None:
        """The guard's ruling on a gate that nobody else answers; None when someone does, who must be asked."""
        routes = self.plans.get(gate.name)
        if routes or (routes is None and self.plan(gate.name)):
            return None
        return PLAIN_YES if self.guard is None else guarded(self.guard, gate, ledger, PLAIN_YES)

    def has_responders(self, gate: type[Gate]) -> bool:
        """Whether anyone but the guard answers at this gate, for any run."""
        return self.has_receivers(gate)

    def has_receivers(self, event: type[Event]) -> bool:
        """Whether anyone receives this event, for any run."""
        routes = self.plans.get(event.name)
        return bool(self.plan(event.name) if routes is None else routes)

    def plan(self, name: str) -> tuple[Route, ...]:
        """The routes of one wire name, by priority, then in order of subscription."""
        plans = self.plans
        routes = self.signal(name).routes()
        if EVERYTHING in self.signals and event_class(name).kind == "fact":
            routes += self.signals[EVERYTHING].routes()
        plan = tuple(sorted(routes, key=lambda route: (route.priority, route.order)))
        plans[name] = plan
        return plan

    def forget_plans(self) -> None:
        """Have every plan made anew; a plan being made in another thread goes into the dropped dict."""
        self.plans = {}


def route_of(receiver: Any, only: frozenset[object] | None, order: int) -> Route:
    """The way to one receiver: ours takes the record alone, a host's plain one takes blinker's arguments."""
    if isinstance(receiver, Subscription):
        return Route(receiver.receiver, only, receiver.subscriber, receiver.priority, order, receiver.seconds)
    strong = receiver() if isinstance(receiver, ref) else receiver

    def deliver(record: Record) -> object:
        target = receiver() if isinstance(receiver, ref) else receiver
        return None if target is None else target(record.run_id, record=record)

    return Route(deliver, only, name_of(strong), 0, order)


async def decisions_of(route: Route, question: Question) -> list[tuple[str, Decision]]:
    """What one responder decided; an error, a time-out or an unlawful answer is a denial with the reason."""
    try:
        answer: object = route.deliver(question)
        if isawaitable(answer):
            answer = await settled(answer, route.limit(RESPONDER_LIMIT_S))
        answers = answer if isinstance(answer, tuple) else (answer,)
        return [(route.subscriber, lawful(each, question.gate, route.subscriber)) for each in answers]
    except Exception as error:  # noqa: BLE001 -- whatever a responder raises is a denial
        reason = f"{route.subscriber} failed at {question.gate.name}: {type(error).__name__}: {error}"
        return [(route.subscriber, Deny(reason))]


def name_of(receiver: object) -> str:
    """A name to show for a receiver that was given none."""
    return getattr(receiver, "__qualname__", type(receiver).__qualname__)


def logged_failure(subscriber: str, event: str, detail: str) -> SubscriberFailed:
    """Log an observer's failure and make the event that notes it.

    Where the host did not configure structlog, which then writes to stdout, the line goes to `logging`.
    """
    import structlog

    if structlog.is_configured():
        logger: FilteringBoundLogger = structlog.get_logger("orchestrator")
        logger.warning("subscriber failed", subscriber=subscriber, on=event, error=detail)
    else:
        logging.getLogger("orchestrator").warning("%s failed at %s: %s", subscriber, event, detail)
    return SubscriberFailed(subscriber=subscriber, event=event, error=detail)

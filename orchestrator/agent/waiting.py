"""Waiting for what runs: each has its own deadline, the host's cancellation is looked at, nothing is waited for twice.

Each effect has a task of its own. Past its deadline it is cancelled; past a grace it is left behind, and whatever it
does then concerns nobody. The supervisor's one deadline per run would not do: tools run side by side.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import attrs

from orchestrator.agent import patience
from orchestrator.agent.cancelling import POLL_S, StopRequestedError, state_of
from orchestrator.agent.invocation import Invocation
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe

__all__ = ["AbortedError", "Flight", "grounded", "landed", "launched", "next_landed", "watched"]

GRACE_S = 0.2
"""Between cancelling an effect and leaving it behind, seconds."""
TURNS_TO_SEE = 3
"""Looks at a token that nobody heeds, before it is acted on."""


Effect = Callable[[], Awaitable[object]]
"""Makes what is to be awaited."""


class AbortedError(Exception):
    """An effect raised what is no Exception, SystemExit for one, or cancelled itself; it ends no more than itself."""


@attrs.define(eq=False)
class Flight:
    """One effect under way."""

    key: str
    """Call id of a tool; `provider` for the model."""
    name: str
    """Name of the tool, or of the provider."""
    task: asyncio.Task[Any]
    seconds: float
    deadline: float
    """Loop time."""
    began_us: int
    is_late: bool = False
    is_interrupted: bool = False

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.is_late or self.is_interrupted or self.task.done()

    @property
    def error(self) -> Exception | None:
        """What it raised."""
        if self.task.cancelled():
            return AbortedError("it cancelled itself")
        error = self.task.exception()
        return error if error is None or isinstance(error, Exception) else AbortedError(describe(error))


def launched(it: Invocation, key: str, name: str, effect: Effect, seconds: float) -> Flight:
    """Start an effect that may take `seconds`; one that is cancelled at once is not even made."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(contained(effect))
    task.add_done_callback(looked_at)
    flight = Flight(key, name, task, seconds, loop.time() + seconds, it.run.clock.monotonic())
    it.flights.append(flight)
    return flight


def watched(it: Invocation, supervisor: Supervisor) -> asyncio.Task[None] | None:
    """Have a cancellation end what does not look at the token itself: gates, people, transcripts."""
    if it.cancellation is None:
        return None
    return asyncio.get_running_loop().create_task(interrupting(it, supervisor))


async def interrupting(it: Invocation, supervisor: Supervisor) -> None:
    """Wait until what does not look at the token itself has held up a run that is to stop for too long.

    That is a grace once the stop is graceful, after the last tool has ended, and next to nothing once it is immediate.
    """
    loop = asyncio.get_running_loop()
    since, limit = loop.time(), 0.0
    while loop.time() - since < limit or limit == 0.0:
        await asyncio.sleep(POLL_S)
        limit = held_up(it)
        since = since if limit else loop.time()
    if not it.is_ending and not it.run.is_over:
        it.is_cut_short = True
        supervisor.interrupt()


def held_up(it: Invocation) -> float:
    """How long what is awaited may hold up the stop that is asked for, seconds; 0 where nothing does."""
    state = state_of(it.cancellation)
    if it.is_looking or state == "none":
        return 0.0
    if state == "immediate":
        return TURNS_TO_SEE * POLL_S
    now = asyncio.get_running_loop().time()
    is_flying = any(not flight.task.done() and now < flight.deadline for flight in it.flights)
    return 0.0 if is_flying else patience.HOOK_GRACE_S


async def landed(it: Invocation, flight: Flight) -> Flight:
    """Wait for the one effect that runs; StopRequestedError when the host would not have it finish."""
    await next_landed(it, [flight])
    if flight.is_interrupted:
        raise StopRequestedError
    return flight


async def next_landed(it: Invocation, flights: list[Flight]) -> Flight:
    """Wait until one of them is over, and take it out of the list."""
    while True:
        over = next((flight for flight in flights if flight.is_over), None)
        if over is not None:
            flights.remove(over)
            it.flights.remove(over)
            return over
        if await it.heed() == "immediate":
            await grounded(flights)
            continue
        timeout = min(flight.deadline for flight in flights) - asyncio.get_running_loop().time()
        if it.cancellation is not None:
            timeout = min(timeout, POLL_S)
        if timeout > 0:
            it.is_looking = True
            try:
                await a_while(flights, timeout)
            finally:
                it.is_looking = False
        await given_up_on(flights)


async def a_while(flights: Iterable[Flight], seconds: float) -> None:
    """Wait until one of them is over, at most so long."""
    await asyncio.sleep(0)  # what never waits is over then, and costs one turn of the loop instead of three
    if not any(flight.task.done() for flight in flights):
        tasks = {flight.task for flight in flights}
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


async def given_up_on(flights: Iterable[Flight]) -> None:
    """Cancel those past their deadline."""
    now = asyncio.get_running_loop().time()
    late = [flight for flight in flights if now >= flight.deadline and not flight.task.done()]
    for flight in late:
        flight.is_late = True
    await cancelled(late)


async def grounded(flights: Iterable[Flight]) -> None:
    """Cancel all that still run; what is over by then stays what it is."""
    running = [flight for flight in flights if not flight.is_over]
    for flight in running:
        flight.is_interrupted = True
    await cancelled(running)


async def cancelled(flights: list[Flight]) -> None:
    """Cancel, and wait a moment for them to give way; what does not is left behind."""
    for flight in flights:
        flight.task.cancel()
    if flights:
        await asyncio.wait({flight.task for flight in flights}, timeout=GRACE_S)


async def contained(effect: Effect) -> object:
    """The effect's result; what would end the loop or the process ends the effect alone."""
    try:
        return await effect()
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Exception):
        raise
    except BaseException as error:
        raise AbortedError(describe(error)) from error


def looked_at(task: asyncio.Task[Any]) -> None:
    """Nobody may ask for the error of a task that was left behind."""
    if not task.cancelled():
        task.exception()

"""The sync face: from any thread, inside a running loop and outside one, and never a hang at its end."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import pytest

from orchestrator import Budget, MergedSpec, Orchestrator, Request
from orchestrator.blocking import run_blocking
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator

SPEC = MergedSpec(intent="Set x to 1.")
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


def engine() -> Orchestrator:
    """An orchestrator that fails once and then passes, in every run."""
    return Orchestrator(
        generator=ScriptedGenerator(["bad", "good"]), evaluator=ScriptedEvaluator([{"a": "no"}, {"a": True}])
    )


def test_outside_a_loop() -> None:
    """Without a running loop it runs where it is called."""

    async def thread() -> int:
        return threading.get_ident()

    assert (engine().run(SPEC).status, run_blocking(thread())) == ("passed", threading.get_ident())


def test_inside_a_running_loop() -> None:
    """Called from a coroutine it blocks that loop, works in a thread of its own, and gives the same
    result.
    """

    async def main() -> tuple[str, int]:
        async def thread() -> int:
            return threading.get_ident()

        return engine().run(SPEC).status, run_blocking(thread())

    status, there = asyncio.run(main())
    assert (status, there != threading.get_ident()) == ("passed", True)


def test_from_many_threads() -> None:
    """One orchestrator serves many threads at once."""
    made = engine()
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: made.run(SPEC), range(24)))
    assert [(result.status, result.attempts) for result in results] == [("passed", 2)] * 24


def test_errors_reach_the_caller() -> None:
    """What is raised inside is raised to the caller, in either place."""

    async def fail() -> None:
        raise LookupError("here")

    async def main() -> None:
        run_blocking(fail())

    with pytest.raises(LookupError, match="here"):
        run_blocking(fail())
    with pytest.raises(LookupError, match="here"):
        asyncio.run(main())


def test_context_is_the_callers() -> None:
    """Context variables of the caller are seen inside, also from the other thread and in plain callables."""
    seen: list[str] = []

    def generate(_: Request) -> str:
        seen.append(TENANT.get())
        return "good"

    made = Orchestrator(generator=generate, evaluator=lambda _: {"a": True})

    async def main() -> None:
        made.run(SPEC)

    token = TENANT.set("somebody")
    try:
        made.run(SPEC)
        asyncio.run(main())
    finally:
        TENANT.reset(token)
    assert seen == ["somebody", "somebody"]


def test_what_is_left_over_does_not_hold_the_caller() -> None:
    """A task that ignores its cancellation is left behind; asyncio.run would wait for it for ever."""
    rounds: list[int] = []

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                rounds.append(len(rounds))

    async def work() -> str:
        kept.append(asyncio.create_task(stubborn()))
        await asyncio.sleep(0)
        return "done"

    kept: list[asyncio.Task[None]] = []
    assert (run_blocking(work()), rounds) == ("done", [0])


def test_interrupt_ends_the_run_in_order() -> None:
    """Ctrl-C cancels the run, which ends with its markers committed; then KeyboardInterrupt is raised."""
    seen = RecordingSubscriber()

    async def interrupted(_: Request) -> str:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
        return ""

    made = Orchestrator(generator=ScriptedGenerator([interrupted]), evaluator=ScriptedEvaluator([]))
    made.bus.subscribe(seen)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        made.run(SPEC)
    assert seen.names[-3:] == ("generation:abandoned", "orchestrator:complete", "execution:end")
    assert signal.getsignal(signal.SIGINT) is before


def test_second_interrupt_interrupts_at_once() -> None:
    """A second Ctrl-C does not wait for what ignores the first."""
    released = asyncio.Event()

    async def stubborn(_: Request) -> str:
        signal.raise_signal(signal.SIGINT)
        try:
            await released.wait()
        except asyncio.CancelledError:
            signal.raise_signal(signal.SIGINT)
        return "late"

    made = Orchestrator(generator=ScriptedGenerator([stubborn]), evaluator=ScriptedEvaluator([{"a": True}]))
    with pytest.raises(KeyboardInterrupt):
        made.run(SPEC)


def test_handler_of_the_host_is_left_alone() -> None:
    """A host with a handler of its own for Ctrl-C keeps it while a run is under way."""
    handled: list[int] = []

    def interrupt(_: Request) -> str:
        return "good"

    async def raising(request: Request) -> str:
        signal.raise_signal(signal.SIGINT)
        return interrupt(request)

    before = signal.signal(signal.SIGINT, lambda number, _: handled.append(number))
    try:
        made = Orchestrator(
            generator=ScriptedGenerator([raising]),
            evaluator=ScriptedEvaluator([{"a": True}]),
            budget=Budget(attempts=1),
        )
        result = made.run(SPEC)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (result.status, handled) == ("passed", [signal.SIGINT])

"""Deadlines that hold whatever an effect does, and a driver that goes on from where it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestrator.supervision import DeadlineError, Supervisor

SHORT_S = 0.01


async def hang() -> str:
    """Never end."""
    await asyncio.Event().wait()
    return ""


async def at_once() -> str:
    """End at once."""
    return "done"


def outcomes(*effects: tuple[Callable[[], Awaitable[Any]], float | None]) -> list[object]:
    """What a driver got of each effect: its result, or the error that it raised."""
    found: list[object] = []

    async def drive(supervisor: Supervisor, is_overdue: bool) -> None:
        if is_overdue:
            found.append("overdue")
        while len(found) < len(effects):
            effect, seconds = effects[len(found)]
            try:
                found.append(await supervisor.effect(effect(), seconds))
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is what the test looks at
                found.append(type(error).__name__)

    async def main() -> None:
        await Supervisor(drive).run()

    asyncio.run(main())
    return found


def test_effects_in_time() -> None:
    """An effect that ends in time gives its result, with a limit or without."""
    assert outcomes((at_once, None), (at_once, 5.0), (at_once, None)) == ["done"] * 3


def test_effect_past_its_deadline() -> None:
    """One that does not is cancelled, and the driver goes on, again and again."""
    assert outcomes((hang, SHORT_S), (at_once, 5.0), (hang, SHORT_S), (at_once, None)) == [
        "DeadlineError",
        "done",
        "DeadlineError",
        "done",
    ]


def test_long_deadline_after_a_short_one() -> None:
    """The one timer of a run follows the effects: an early look at a later deadline cancels nothing."""

    async def in_a_while() -> str:
        loop = asyncio.get_running_loop()
        later = loop.create_future()
        loop.call_later(3 * SHORT_S, later.set_result, None)
        await later
        return "done"

    assert outcomes((at_once, SHORT_S), (in_a_while, 5.0)) == ["done", "done"]


def test_effect_that_swallows_its_cancellation() -> None:
    """One that does not give way is given up: a new driver goes on, the old one touches nothing any more."""
    released = asyncio.Event()

    async def stubborn() -> str:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                asyncio.get_running_loop().call_later(0.25, released.set)
        return "late"

    assert outcomes((stubborn, SHORT_S), (at_once, None)) == ["overdue", "done"]


def test_late_result_is_no_result() -> None:
    """An effect that blocked the loop past its deadline is late, though it has a result."""

    async def block() -> str:
        loop = asyncio.get_running_loop()
        end = loop.time() + 2 * SHORT_S
        while loop.time() < end:
            pass
        return "late"

    assert outcomes((block, SHORT_S), (at_once, None)) == ["DeadlineError", "done"]


def test_effect_that_returns_when_cancelled_is_late() -> None:
    """A result that came only because the effect was cancelled is not used."""

    async def partial() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "partial"
        return ""

    assert outcomes((partial, SHORT_S), (at_once, 1.0)) == ["DeadlineError", "done"]


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (OSError("x"), "OSError"),
        (asyncio.CancelledError(), "EffectCancelledError"),
        (SystemExit(1), "EffectAbortedError"),
        (TimeoutError(), "TimeoutError"),
    ],
    ids=["error", "cancelled", "exit", "timeout"],
)
def test_effect_that_raises(error: BaseException, seen: str) -> None:
    """Whatever it raises, it ends nothing but itself."""

    async def fail() -> None:
        raise error

    assert outcomes((fail, 5.0), (at_once, None)) == [seen, "done"]


def test_error_of_the_driver_reaches_the_caller() -> None:
    """What the driver raises is raised where the invocation is awaited."""

    async def drive(supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: ARG001 -- the supervisor's callback
        await supervisor.effect(at_once(), None)
        raise LookupError("from the driver")

    async def main() -> None:
        await Supervisor(drive).run()

    with pytest.raises(LookupError, match="from the driver"):
        asyncio.run(main())


@pytest.mark.parametrize("steps", range(1, 8))
@pytest.mark.parametrize("fails", [False, True])
def test_cancellation_at_any_step(steps: int, *, fails: bool) -> None:
    """Whenever the host cancels, the driver's end is awaited first; an error of the driver's is not lost."""
    ends: list[str] = []

    async def drive(_: Supervisor, is_overdue: bool) -> None:
        assert not is_overdue
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        finally:
            ends.append("ended")
        if fails:
            raise ValueError("of the driver")

    async def main() -> str:
        task = asyncio.create_task(Supervisor(drive).run())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        (found,) = await asyncio.gather(task, return_exceptions=True)
        return type(found).__name__

    outcome = asyncio.run(main())
    assert ends == ["ended"]
    assert outcome in {"CancelledError", "ValueError" if fails else "NoneType"}


def test_nothing_is_left_in_the_loop() -> None:
    """After the end there is no task left, and no timer: a long limit does not keep the loop busy."""

    async def drive(supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: ARG001 -- the supervisor's callback
        await supervisor.effect(at_once(), 3_600.0)
        with pytest.raises(DeadlineError):
            await supervisor.effect(hang(), SHORT_S)

    async def main() -> tuple[int, bool]:
        supervisor = Supervisor(drive)
        await supervisor.run()
        await asyncio.sleep(0)
        return len(asyncio.all_tasks()), supervisor.timer is None or supervisor.timer.cancelled()

    assert asyncio.run(main()) == (1, True)

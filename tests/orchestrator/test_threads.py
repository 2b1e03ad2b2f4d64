"""What `call_in_thread` promises."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from orchestrator.threads import call_in_thread


def test_it_gives_what_the_function_gives() -> None:
    """Results and errors come back as they are, arguments go in as they are."""

    async def both() -> tuple[str, str]:
        with pytest.raises(KeyError) as caught:
            await call_in_thread({"present": 1}.__getitem__, "absent")
        return await call_in_thread("{}-{}".format, 1, 2), str(caught.value)

    assert asyncio.run(both()) == ("1-2", "'absent'")


def test_a_thread_is_used_again() -> None:
    """Calls one after the other need one thread."""

    async def three() -> set[int]:
        return {await call_in_thread(threading.get_ident) for _ in range(3)}

    assert len(asyncio.run(three())) == 1


def test_the_context_is_copied() -> None:
    """The function sees the caller's context variables and cannot change them for the caller."""
    variable = contextvars.ContextVar("variable", default="unset")

    def change() -> str:
        seen = variable.get()
        variable.set("changed")
        return seen

    async def call() -> tuple[str, str]:
        variable.set("set")
        return await call_in_thread(change), variable.get()

    assert asyncio.run(call()) == ("set", "set")


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()])
def test_what_would_end_more_than_the_call_is_a_runtime_error(error: BaseException) -> None:
    """A function cannot end the loop, or pose as a cancellation of its caller."""

    def fail() -> None:
        raise error

    async def call() -> BaseException | None:
        with pytest.raises(RuntimeError, match=type(error).__name__) as caught:
            await call_in_thread(fail)
        return caught.value.__cause__

    assert asyncio.run(call()) is error


def test_a_cancelled_call_is_abandoned_at_once() -> None:
    """The caller does not wait for the function; its thread is not used for others, its result is dropped."""
    begun, release = threading.Event(), threading.Event()
    threads: list[int] = []

    def hang() -> str:
        threads.append(threading.get_ident())
        begun.set()
        release.wait(10)
        return "late"

    async def call() -> int:
        task = asyncio.create_task(call_in_thread(hang))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other = await call_in_thread(threading.get_ident)
        release.set()
        return other

    assert asyncio.run(call()) not in threads


def test_a_function_that_hangs_does_not_keep_the_process_alive() -> None:
    """The interpreter ends although a thread of ours is still busy."""
    program = (
        "import asyncio, time\n"
        "from orchestrator.threads import call_in_thread\n"
        "async def main():\n"
        "    await asyncio.wait({asyncio.ensure_future(call_in_thread(time.sleep, 60))}, timeout=0.05)\n"
        "asyncio.run(main())\n"
        "print('over')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"over\n", b"")

"""A2: generators of every kind that do not want to end."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Budget, MergedSpec, Orchestrator, Request, Submission, Verdict
from orchestrator.attendant import TERMINATION_GRACE_S
from orchestrator.generators.callable import CallableGenerator
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.process import Launcher
from orchestrator.supervision import GRACE_S

SLACK_S = 0.5
LIMIT_S = {"text": 0.4, "json": 0.4, "files": 0.4, "process": 1.2}
"""Time of a call: what each kind needs to be under way, also on a busy machine, seconds."""
UNDER_WAY = "import os, signal, sys, time\nprint('under way', file=sys.stderr, flush=True)\n"
HOSTILE = {
    "ignores every signal": UNDER_WAY + "for number in range(1, 65):\n"
    "    try: signal.signal(number, signal.SIG_IGN)\n"
    "    except (OSError, ValueError): pass\n"
    "while True: time.sleep(60)",
    "stops itself": UNDER_WAY + "while True: os.kill(os.getpid(), signal.SIGSTOP)",
    "hides in children": UNDER_WAY
    + "signal.signal(15, signal.SIG_IGN)\nfor _ in range(4):\n    if os.fork() == 0: break\ntime.sleep(60)",
    "drips": UNDER_WAY + "signal.signal(15, signal.SIG_IGN)\nwhile True: print('.', flush=True); time.sleep(0.01)",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a2_a_program_ends_in_time(ground: Any, name: str) -> None:
    """Whatever it does, its end is not later than its time, the grace and half a second; and nothing is left."""
    completed = ground.run(HOSTILE[name], seconds=0.3)
    late = completed.duration_us / 1e6 - 0.3 - TERMINATION_GRACE_S
    found = (completed.timed_out, b"under way" in completed.stderr, late < SLACK_S, ground.survivors())
    assert found == (True, True, True, []), completed


@pytest.mark.parametrize("kind", ["text", "json", "files", "process"])
@pytest.mark.parametrize(("name", "whose"), [("ignores every signal", "its own"), ("stops itself", "the run's")])
def test_a2_a_generator_that_is_a_program_ends_in_time(
    kind: str, name: str, whose: str, launcher: Launcher, tmp_path: Path
) -> None:
    """By the time of the call or by that of the whole run, through the engine."""
    seconds = LIMIT_S[kind] if whose == "its own" else None
    if kind == "process":
        (tmp_path / "hostile.py").write_text(f"def generate(request):\n    exec({HOSTILE[name]!r}, {{}})\n")
        generator: Any = ProcessGenerator("hostile:generate", path=(tmp_path,), launcher=launcher, seconds=seconds)
    else:
        command = [sys.executable, "-I", "-S", "-c", HOSTILE[name]]
        generator = CommandGenerator(command, output=kind, launcher=launcher, seconds=seconds)  # type: ignore[arg-type] # the kind
    told, took = ended(generator, 30 if seconds else LIMIT_S[kind])
    assert took < LIMIT_S[kind] + TERMINATION_GRACE_S + GRACE_S + SLACK_S
    assert told["status"] == "exhausted"
    assert seconds is None or ("timed out" in told["errors"][0] and "under way" in told["errors"][0]), told["errors"]


async def swallowing(_: Request) -> str:
    """Takes no for no answer."""
    until = asyncio.get_running_loop().time() + 1.5
    while asyncio.get_running_loop().time() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(1.5)
    return "late"


async def cancelled_at_length(_: Request) -> str:
    """Cleans up for longer than anybody waits."""
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(1.5)
    return "never"


def blocking(_: Request) -> str:
    """Hangs in a thread that nothing can end."""
    let_go.wait(20)
    return "late"


def burning(_: Request) -> str:
    """Takes what it can of the interpreter."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        pass
    return "late"


@pytest.mark.parametrize("call", [swallowing, cancelled_at_length, blocking, burning])
def test_a2_a_generator_in_this_process_is_left_behind_in_time(call: Callable[[Request], Any]) -> None:
    """It cannot be killed, which its isolation says; the run goes on without it and takes no late answer."""
    let_go.clear()
    try:
        told, took = ended(CallableGenerator(call), 0.2)
    finally:
        let_go.set()
    assert took < 0.2 + GRACE_S + SLACK_S
    assert (told["status"], told["candidate"]) == ("exhausted", None)
    assert "end of a call that hangs" in told["isolation"]["generator"]["not_enforced"]


def ended(generator: Any, seconds: float) -> tuple[dict[str, Any], float]:
    """What a run of one attempt told, and how long it took, seconds; that of the clean-up after it not counted."""
    orchestrator = Orchestrator(generator=generator, evaluator=never, budget=Budget(attempts=1, seconds=seconds))

    async def timed() -> tuple[dict[str, Any], float]:
        began = time.monotonic()
        report = await orchestrator.arun(MergedSpec(name="spec", intent="Do it."))
        took = time.monotonic() - began
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        return report.as_json(), took

    return asyncio.run(timed())


def never(_: Submission) -> Verdict:
    """Nothing hostile gets as far as an evaluation."""
    pytest.fail("there was a candidate")


let_go = threading.Event()

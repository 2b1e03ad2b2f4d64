"""What an attempt costs with no engine around it: the parts that are asked for, written out in one function.

Five events and their records, a fenced prompt, a reservation that is settled, two commits to a list behind a
coroutine, a deadline, checked results, the closest attempt, one log line an attempt; each in its cheapest form. There
is no table, port, strategy, gate, digest, isolation, secret, retry or resume in it. What an engine in Python can come
to lies above this, whatever it does.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import attrs
import peer_ours  # type: ignore[import-not-found]  # beside this file, which is run as a script
import structlog
from common import main, make_candidate  # type: ignore[import-not-found]  # the peers' folder

import orchestrator
from orchestrator import CaseResult, CaseStatus

PASSED = CaseStatus.PASSED
OPENING = "x" * 1500
MOST = 1 << 20
MOVES = {
    ("prompting", "prompt:ready"): "generating",
    ("generating", "generation:started"): "generating",
    ("generating", "candidate:generated"): "evaluating",
    ("evaluating", "attempt:failed"): "refining",
    ("evaluating", "attempt:passed"): "passed",
    ("refining", "prompt:refined"): "prompting",
}
log = structlog.get_logger()


class Record(NamedTuple):
    """One event, when it was and where it led."""

    sequence: int
    name: str
    at: float
    target: str
    event: Any


@attrs.define
class Ready:
    """A prompt."""

    attempt: int
    prompt: str


@attrs.define
class Started:
    """A call and what is held for it."""

    attempt: int
    key: str
    tokens: int
    seconds: float


@attrs.define
class Generated:
    """A candidate and what it was charged."""

    attempt: int
    candidate: str
    tokens: int
    seconds: float


@attrs.define
class Judged:
    """Which cases did not pass."""

    attempt: int
    failing: tuple[CaseResult, ...]
    seconds: float


@attrs.define
class Refined:
    """What changes for the next attempt."""

    attempt: int
    feedback: str


@attrs.define
class Asked:
    """What a generator or an evaluator is given."""

    attempt: int
    text: str
    seconds: float


@attrs.define
class Batch:
    """Records that are committed together."""

    records: tuple[Record, ...]


class Journal:
    """A list behind a coroutine, as a port asks for it."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    async def append(self, batch: Batch) -> None:
        """Keep a batch that follows the last."""
        if batch.records[0].sequence != len(self.records):
            raise ValueError("it does not follow")
        self.records += batch.records


async def within(effect: Awaitable[Any], deadline: float) -> Any:
    """Await an effect; a timer elsewhere would look at the deadline."""
    answer = await effect
    if time.monotonic() > deadline:
        raise TimeoutError
    return answer


def prompt_of(failing: tuple[CaseResult, ...], candidate: str) -> str:
    """The next prompt: what failed, and the ends of the candidate, behind fences that no text can close."""
    details = [f"- {case.id}: {case.message}" for case in failing]
    shown = candidate[:100] + candidate[-100:]
    token = hashlib.sha256("\0".join([*details, shown]).encode()).hexdigest()[:8]
    fenced = [f"<failures {token}>", *details, f"</failures {token}>", f"<candidate {token}>", shown]
    return "\n".join([OPENING, *fenced, f"</candidate {token}>"])


async def run(k: int) -> list[Record]:
    """One run of the workload."""
    journal, outbox, state = Journal(), list[Record](), "prompting"
    begun, attempt, spent, sequence = time.monotonic(), 1, 0, 0
    deadline, holds = begun + 30.0, dict[str, int]()
    closest: Judged | None = None
    last: tuple[tuple[CaseResult, ...], str] | None = None

    def fire(name: str, event: Any) -> None:
        nonlocal state, sequence
        state = MOVES[state, name]
        outbox.append(Record(sequence, name, time.time(), state, event))
        sequence += 1

    async def generate(asked: Asked) -> str:
        return make_candidate(0, asked.attempt)  # type: ignore[no-any-return]

    async def evaluate(asked: Asked) -> tuple[CaseResult, ...]:
        return peer_ours.verdict_of(asked.attempt, k).results  # type: ignore[no-any-return]

    while True:
        text = OPENING if last is None else prompt_of(*last)
        fire("prompt:ready", Ready(attempt, text))
        now = time.monotonic()
        if attempt > k or now > deadline:
            raise RuntimeError("the budget is used up")
        key, holds[f"run:{attempt}"] = f"run:{attempt}", 1000
        fire("generation:started", Started(attempt, key, 1000, deadline - now))
        await journal.append(Batch(tuple(outbox)))
        outbox.clear()
        candidate = await within(generate(Asked(attempt, text, deadline - now)), deadline)
        if type(candidate) is not str or len(candidate) > MOST:
            raise TypeError("no candidate")
        tokens = (len(text) + len(candidate)) // 4
        spent += tokens
        del holds[key]
        fire("candidate:generated", Generated(attempt, candidate, tokens, time.monotonic() - now))
        await journal.append(Batch(tuple(outbox)))
        outbox.clear()
        now = time.monotonic()
        results = await within(evaluate(Asked(attempt, candidate, deadline - now)), deadline)
        if not all(type(case) is CaseResult and case.message.isascii() and case.id.isprintable() for case in results):
            raise TypeError("no verdict")
        failing = tuple([case for case in results if case.status is not PASSED])
        judged = Judged(attempt, failing, time.monotonic() - now)
        if closest is None or len(failing) < len(closest.failing):
            closest = judged
        log.info("attempt", run_id="run", attempt=attempt, failing=len(failing), tokens=spent)
        if not failing:
            fire("attempt:passed", judged)
            await journal.append(Batch(tuple(outbox)))
            return journal.records
        fire("attempt:failed", judged)
        last, attempt = (failing, candidate), attempt + 1
        fire("prompt:refined", Refined(attempt, "details"))


def memory(ctx: Any) -> Callable[[int], None]:
    """One run after another on one loop."""
    loop = asyncio.new_event_loop()
    ctx.cleanup.append(loop.close)

    def one(_: int) -> None:
        assert loop.run_until_complete(run(ctx.k))[-1].target == "passed"

    return one


if __name__ == "__main__":
    main("floor", orchestrator.__version__, {"memory": memory}, {})

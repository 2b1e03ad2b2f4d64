"""This engine on the workload of the peers' benchmark folder; the same command line and the same JSON line.

Needs that folder on `PYTHONPATH` (its `common.py` holds the workload). Modes: `memory` is history, budget and log
subscribers attached, async callables, a deadline in force; `memory_records` renders every record, `memory_sync`
has sync callables in threads, `memory_bare` attaches no log; `durable` is SQLite with synchronous=FULL.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
from common import failing, main, make_candidate, make_prompt  # type: ignore[import-not-found]  # the peers' folder

import orchestrator
from orchestrator import (
    Budget,
    Bus,
    CaseResult,
    CaseStatus,
    MergedSpec,
    Orchestrator,
    PromptTemplate,
    Request,
    Submission,
    Verdict,
)
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.subscribers.log import log_attempts, log_records

ENCODER = json.JSONEncoder(default=repr)
structlog.configure(
    # One encoder for all lines, as a host that logs much has it: json.dumps with options makes one a line.
    processors=[structlog.processors.JSONRenderer(serializer=lambda line, **_: ENCODER.encode(line))],
    wrapper_class=structlog.make_filtering_bound_logger(20),
    logger_factory=structlog.WriteLoggerFactory(open(os.devnull, "w")),  # noqa: SIM115 -- open as long as the process
    cache_logger_on_first_use=True,
)
FAILED = CaseStatus.FAILED
"""Looked up once: in Python 3.11 an attribute of an Enum class costs 0.15 µs."""
SPEC = MergedSpec(name="bench", intent=make_prompt(0, 0)[:1400])
TEMPLATE = PromptTemplate(candidate_limit=200)
"""The peers' prompt is 2 kB; ours is the spec, the five failing cases and the head and tail of the candidate."""


def engine(
    k: int, log: Callable[[Bus], object] | None, *, sync: bool = False, sleep: float = 0.0, **options: Any
) -> Orchestrator:
    """An orchestrator on the workload: K - 1 failures, then a pass."""

    async def generate(request: Request) -> str:
        if sleep:
            await asyncio.sleep(sleep)
        return make_candidate(0, request.attempt)  # type: ignore[no-any-return]

    async def evaluate(submission: Submission) -> Verdict:
        return verdict_of(submission.attempt, k)

    def generate_sync(request: Request) -> str:
        return make_candidate(0, request.attempt)  # type: ignore[no-any-return]

    def evaluate_sync(submission: Submission) -> Verdict:
        return verdict_of(submission.attempt, k)

    made = Orchestrator(
        generator=generate_sync if sync else generate,
        evaluator=evaluate_sync if sync else evaluate,
        budget=Budget(attempts=k + 1, seconds=30.0),
        template=TEMPLATE,
        **options,
    )
    if log is not None:
        log(made.bus)
    return made


def verdict_of(attempt: int, k: int) -> Verdict:
    """The workload's verdict on an attempt."""
    fails = failing(attempt, k)
    return Verdict(
        tuple([CaseResult(text[:8], FAILED, text[9:]) for text in fails]) or (CaseResult("all", CaseStatus.PASSED),)
    )


def check(result: orchestrator.Passed | orchestrator.Exhausted, k: int) -> None:
    """The workload was done: K attempts in the history, all but the last with five failing cases."""
    assert isinstance(result, orchestrator.Passed)
    assert len(result.history) == k
    assert k == 1 or len(result.history[0].failing) == 5


def looped(ctx: Any, made: Orchestrator) -> Callable[[int], None]:
    """Run on one loop, one run after another."""
    loop = asyncio.new_event_loop()
    ctx.cleanup.append(loop.close)

    def one(_: int) -> None:
        check(loop.run_until_complete(made.arun(SPEC)), ctx.k)

    return one


def memory(ctx: Any) -> Callable[[int], None]:
    """History, budget and log subscribers, one line an attempt."""
    return looped(ctx, engine(ctx.k, log_attempts))


def memory_bare(ctx: Any) -> Callable[[int], None]:
    """History and budget alone."""
    return looped(ctx, engine(ctx.k, None))


def memory_records(ctx: Any) -> Callable[[int], None]:
    """Every record rendered."""
    return looped(ctx, engine(ctx.k, records_at_info))


def records_at_info(bus: Bus) -> object:
    """Render every record, at a level that is shown."""
    shown = structlog.wrap_logger(
        structlog.WriteLogger(open(os.devnull, "w")),  # noqa: SIM115 -- open as long as the process
        wrapper_class=structlog.make_filtering_bound_logger(10),
        processors=[structlog.processors.JSONRenderer()],
    )
    return log_records(bus, shown)


def memory_sync(ctx: Any) -> Callable[[int], None]:
    """Sync callables, each in a worker thread."""
    return looped(ctx, engine(ctx.k, log_attempts, sync=True))


def durable(ctx: Any) -> Callable[[int], None]:
    """SQLite, synchronous=FULL, hash-chained, two commits an attempt."""
    journal = SqliteJournal(os.path.join(ctx.dir, "runs.sqlite"))
    ctx.cleanup.append(journal.close)
    return looped(ctx, engine(ctx.k, log_attempts, journal=journal))


async def concurrent(_: Any, n: int, k: int, sleep: float) -> float:
    """`n` runs at once, each generation sleeping."""
    made = engine(k, log_attempts, sleep=sleep)
    begun = time.perf_counter()
    results = await asyncio.gather(*[made.arun(SPEC) for _ in range(n)])
    wall = time.perf_counter() - begun
    for result in results:
        check(result, k)
    return wall


MODES: dict[str, Callable[[Any], Callable[[int], None]]] = {
    each.__name__: each for each in (memory, memory_bare, memory_records, memory_sync, durable)
}
CONCURRENT: dict[str, Callable[..., Coroutine[Any, Any, float]]] = {"memory": concurrent}

if __name__ == "__main__":
    gc.collect()
    main("ours", orchestrator.__version__, MODES, CONCURRENT)

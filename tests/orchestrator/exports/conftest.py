"""Recorded runs of every ending, with texts that try to break out of whatever they are put into."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest

from orchestrator import (
    Budget,
    Candidate,
    CaseResult,
    CaseStatus,
    EvalCase,
    Generation,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Request,
    RunInterruptedError,
    Submission,
    Usage,
    Verdict,
)
from orchestrator.history import load_run
from orchestrator.journal.memory import MemoryJournal
from orchestrator.run import Run
from orchestrator.testing import ManualClock

SPEC = MergedSpec(
    name="colours",
    intent="Name the colours.",
    evals=(EvalCase(name="palette::red", severity="critical"), EvalCase(name="palette::green"), EvalCase(name="only")),
)
HOSTILE = (
    "</failure><script>alert(1)</script> & ]]> | [a](javascript:x) ![i](http://x/y.png) <b>@someone www.x.org\n"
    "``` \n```` fence\n# heading\n\x1b[31mred\x1b[0m \x00\x08\ufffe\uffff\u202e end"
)
"""A text that means something to a terminal, to XML, to HTML and to Markdown."""

HOSTILE_SPEC = MergedSpec(
    name="<img src=x> `` [n](http://x)", intent="Be safe.", evals=(EvalCase(name="a`b <i>"), EvalCase(name="plain"))
)


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names its last word, `only` when it names nothing else."""
    words = "\n".join([submission.candidate.text, *submission.candidate.files.values()]).split()
    return Verdict(
        (
            verdict("palette::red", "red" in words),
            verdict("palette::green", "green" in words),
            CaseResult("only", CaseStatus.SKIPPED, "")
            if "skip" in words
            else verdict("only", set(words) <= {"red", "green"}),
        )
    )


def verdict(name: str, is_passed: bool) -> CaseResult:
    """A case, with a message of two lines where it failed."""
    return CaseResult(name, CaseStatus.PASSED if is_passed else CaseStatus.FAILED, "" if is_passed else "no\nnot so")


def hostile(_: Submission) -> Verdict:
    """A verdict whose messages try to get out."""
    return Verdict((CaseResult("a`b <i>", CaseStatus.ERROR, HOSTILE), CaseResult("plain", CaseStatus.FAILED, "`a`")))


def recorded(
    *answers: str,
    attempts: int = 3,
    spec: MergedSpec = SPEC,
    evaluator: Callable[[Submission], Verdict] = judged,
    journal: MemoryJournal | None = None,
) -> Run:
    """A run with a generator that gives these answers (an error for an empty one), then is gone; read back."""
    clock = ManualClock()

    def generate(request: Request) -> Generation:
        clock.advance(2)
        if request.attempt > len(answers):
            raise GeneratorUnavailableError("no more answers")
        text = answers[request.attempt - 1]
        if not text:
            raise ValueError("nothing came: <b>")
        made = Candidate(files={"a.txt": "red\n", "b/c.txt": "green\n"}) if text == "files" else Candidate(text)
        return Generation(candidate=made, usage=Usage(input_tokens=11, output_tokens=7, money_micro=3))

    kept = MemoryJournal() if journal is None else journal
    engine = Orchestrator(
        generator=generate, evaluator=evaluator, budget=Budget(attempts=attempts), journal=kept, clock=clock
    )
    with suppress(RunInterruptedError):
        engine.run(spec, run_id="7f3a")
    return asyncio.run(load_run(kept, "7f3a"))


ENDINGS: Mapping[str, Callable[[], Run]] = {
    "passed": lambda: recorded("", "red", "red green"),
    "passed with files": lambda: recorded("red", "files"),
    "exhausted": lambda: recorded("red blue", "red skip", "red blue"),
    "nothing generated": lambda: recorded("", "", ""),
    "interrupted": lambda: recorded("red"),
    "interrupted at once": recorded,
    "hostile": lambda: recorded(HOSTILE, "``````", spec=HOSTILE_SPEC, evaluator=hostile, attempts=2),
}


@pytest.fixture(scope="session", params=ENDINGS)
def ended(request: pytest.FixtureRequest) -> Run:
    """A run of each ending in turn."""
    return ENDINGS[request.param]()


@pytest.fixture(scope="session")
def run_called() -> Callable[[str], Run]:
    """The run of a given ending."""
    return lambda name: ENDINGS[name]()


@pytest.fixture(scope="session")
def hostile_text() -> str:
    """The text that tries to get out."""
    return HOSTILE

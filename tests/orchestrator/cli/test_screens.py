"""What progress looks like, screen by screen, without a terminal."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from orchestrator import (
    Budget,
    CaseResult,
    CaseStatus,
    EvalCase,
    Generation,
    MergedSpec,
    Orchestrator,
    Request,
    Submission,
    Usage,
    Verdict,
)
from orchestrator.candidate import Candidate
from orchestrator.cli.appearance import ASCII, UNICODE
from orchestrator.cli.live import LiveScreen
from orchestrator.cli.plain import EFFECTS, PlainScreen, lines_of
from orchestrator.cli.progress import Progress, QuietScreen, Screen
from orchestrator.generators.callable import CallableGenerator
from orchestrator.journal.memory import MemoryJournal
from orchestrator.run import Run
from orchestrator_events.budget import Charge
from orchestrator_events.clock import SystemClock
from orchestrator_events.execution import SecretFound
from orchestrator_events.record import Record
from orchestrator_events.run import CasesPinned, EvaluationStarted, GenerationProgressed, GenerationRetried
from orchestrator_states.run import RUN

SPEC = MergedSpec(
    name="colours \x1b[31m",
    intent="Name the colours.",
    evals=tuple(EvalCase(name=name) for name in ("red", "green", "blue")),
)


def console() -> tuple[Console, io.StringIO]:
    """A console that thinks it draws on a terminal of 70 columns, without colour."""
    written = io.StringIO()
    return Console(file=written, force_terminal=True, color_system=None, width=70, soft_wrap=True), written


def judged(submission: Submission) -> Verdict:
    """Cases pass that the candidate names."""
    return Verdict(
        CaseResult(case.name, CaseStatus.PASSED)
        if case.name in submission.candidate.text
        else CaseResult(case.name, CaseStatus.FAILED, "not \x1b[1mthere\n" + "x" * 200)
        for case in submission.spec.evals
    )


async def watched(screen: Screen, answers: list[str], **options: Any) -> None:
    """A run with these answers, shown on a screen."""

    def generate(request: Request) -> Generation:
        text = answers[request.attempt - 1]
        if not text:
            raise TimeoutError("the line is \x1b[5mdead")
        return Generation(candidate=Candidate(text), usage=Usage(input_tokens=100, output_tokens=50, money_micro=2_000))

    generator = CallableGenerator(generate, name="scripted")
    orchestrator = Orchestrator(generator=generator, evaluator=judged, **options)
    run = Run.blank("7f3a", RUN, orchestrator.budget, orchestrator.clock, MemoryJournal(), spec=SPEC)
    progress = Progress(run, screen)
    orchestrator.bus.subscribe(progress)
    try:
        await orchestrator.arun(SPEC, run_id="7f3a")
    finally:
        screen.close()


class Frames(LiveScreen):
    """A live screen that keeps the frame of each effect."""

    kept: list[str]

    def show(self, record: Record) -> None:
        """Show the record, and keep what is drawn while an effect is under way."""
        super().show(record)
        if isinstance(record.event, EFFECTS):
            frame, written = console()
            frame.print(self.frame())
            self.kept.append(written.getvalue())


LIVE = """\

colours  generating #4  TIME   total TIME
  attempts ##############=====.....  3 of 5, one under way
  time     ........................  TIME of 10m 00s
  output   ######==................  160 of 600, 60 held
  #1   no candidate
  #2   +xx  1/3
  #3   ++x  2/3  closest
  - #3 will see 2 failing cases with their messages
  - #3 is the closest so far: 2/3 cases pass
  - #4 will see 1 failing case with its message
"""


def test_live_frame(normalised: Callable[[str], str]) -> None:
    """State, limits with what is held, the last attempts case by case, and the last decisions."""
    drawn, _ = console()
    screen = Frames(drawn, ASCII)
    screen.kept = []
    budget = Budget(seconds=600, output_tokens=600)
    parameters = {"max_tokens": 60}
    asyncio.run(watched(screen, ["", "red", "red green", "red green blue"], budget=budget, parameters=parameters))
    assert normalised(screen.kept[-2]) == LIVE


PLAIN = """\
run 7f3a  colours  spec 6cbf9ab4  generator scripted  limits 5 attempts, 3 repeats
isolation  generator none (in-process) · evaluator none (in-process)
not enforced: LIST
#1   generate TIME TOKENS  no candidate  TimeoutError: the line is dead
#2   generate TIME 150 tokens         evaluate TIME   1/3 passed  closest b1f51a51  green: not there
#3   generate TIME 150 tokens         as #2           1/3 passed  repeat 1 of 3  same candidate, verdict reused
#4   generate TIME 150 tokens         evaluate TIME   3/3 passed, conforms  fixed 2, broke 0
"""


def test_plain_lines(normalised: Callable[[str], str]) -> None:
    """One line for the run and one for each attempt, nothing in them that a terminal would act on."""
    written = io.StringIO()
    drawn = Console(file=written, force_terminal=False, color_system=None, soft_wrap=True)
    asyncio.run(watched(PlainScreen(drawn, UNICODE), ["", "red", "red", "red green blue"]))
    assert normalised(written.getvalue()) == PLAIN


def test_what_is_tried_again_and_what_is_found_are_lines() -> None:
    """A retry, a secret and pinned cases have a line each, in plain and in live displays alike."""
    run = Run.blank("7f3a", RUN, Budget(), SystemClock(), MemoryJournal(), spec=SPEC)
    events = (
        GenerationRetried(attempt=1, key="k", retry=2, reason="503: \x1b[1mbusy", wait_us=2_000_000, charge=Charge()),
        SecretFound(secret="key", place="candidate b1f51a51", is_refused=True),
        SecretFound(secret="key", place="candidate \x1b[1mb1f51a51"),
        CasesPinned(cases=("a", "b"), controls=("c",)),
    )
    lines = [
        str(line)
        for event in events
        for line in lines_of(run, Record("7f3a", 1, 0, "run", "generating", "generating", event), ASCII)
    ]
    assert lines == [
        "#1   retry 2 in 2.0s: 503: busy",
        "secret key found in candidate b1f51a51, refused",
        "secret key found in candidate b1f51a51",
        "pinned  exactly 2 cases must pass, 1 control must fail",
    ]


def test_live_tokens() -> None:
    """The live display shows how much the call in flight has written, and forgets it when another effect begins."""

    async def work() -> list[bool]:
        drawn, _ = console()
        screen = LiveScreen(drawn, ASCII)
        run = Run.blank("7f3a", RUN, Budget(), SystemClock(), MemoryJournal(), spec=SPEC)
        screen.open(run)
        told = GenerationProgressed(attempt=1, output_tokens=1_234, elapsed_us=5)
        screen.progress(Record("7f3a", 1, 0, "run", "generating", "generating", told))
        before = "~1,234 tokens" in str(screen.title(run))
        judged = EvaluationStarted(attempt=1)
        screen.show(Record("7f3a", 2, 0, "run", "evaluating", "evaluating", judged))
        after = "tokens" in str(screen.title(run))
        screen.close()
        return [before, after]

    assert asyncio.run(work()) == [True, False]


def test_live_hides_no_limit(normalised: Callable[[str], str]) -> None:
    """On a narrow terminal an attempt's line is cut, but not what limits hold and what nothing holds back."""
    drawn, written = console()
    asyncio.run(watched(LiveScreen(drawn, ASCII), ["red green blue"], budget=Budget(seconds=600, tokens=600)))
    lines = normalised(written.getvalue())
    held = "files, network, memory, processes, environment, end of a call that hangs"
    assert [part in written.getvalue() for part in ("10m, 600 tokens", f"not enforced: {held}")] == [True, True], lines


class Listener(io.StringIO):
    """A stream that tells when a line was written for the third time."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def write(self, text: str) -> int:
        """Write, and tell."""
        written = super().write(text)
        if self.getvalue().count("#1   still evaluating, ") > 2:
            self.heard.set()
        return written


def test_heartbeat() -> None:
    """While an effect takes long, a line says every now and then that the run is alive, and for how long."""

    async def work() -> list[str]:
        stream = Listener()
        screen = PlainScreen(Console(file=stream, color_system=None, soft_wrap=True), UNICODE, heartbeat_s=0.001)

        async def slow(submission: Submission) -> Verdict:
            await stream.heard.wait()
            return judged(submission)

        orchestrator = Orchestrator(generator=lambda _: "red green blue", evaluator=slow)
        run = Run.blank("7f3a", RUN, orchestrator.budget, orchestrator.clock, MemoryJournal(), spec=SPEC)
        orchestrator.bus.subscribe(Progress(run, screen))
        await orchestrator.arun(SPEC, run_id="7f3a")
        screen.close()
        return stream.getvalue().splitlines()

    assert asyncio.run(work())[-1].endswith("3/3 passed, conforms")


@pytest.mark.parametrize("make", [lambda: PlainScreen(console()[0], ASCII), lambda: LiveScreen(console()[0], ASCII)])
def test_closing_leaves_no_timer(make: Callable[[], Screen]) -> None:
    """Closing a screen stops its timer, as often as it is closed."""

    async def work() -> set[object]:
        screen = make()
        await watched(screen, ["red green blue"])
        screen.close()
        return {timer for timer in [getattr(screen, "timer", None)] if timer is not None and not timer.cancelled()}

    assert asyncio.run(work()) == set()


def test_quiet_screen() -> None:
    """A quiet screen takes part in everything and shows nothing."""
    asyncio.run(watched(QuietScreen(), ["red green blue"]))

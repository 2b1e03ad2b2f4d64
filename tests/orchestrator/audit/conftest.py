"""Real runs of every ending, exported; and the tools of somebody who tampers with an export."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from typing import Any

import attrs
import pytest

from orchestrator import (
    Attempt,
    Budget,
    Candidate,
    Constraint,
    EvalCase,
    EvaluationError,
    Generation,
    MergedSpec,
    Orchestrator,
    OrchestratorError,
    ParameterVariation,
    Refinement,
    Submission,
    Usage,
    Verdict,
)
from orchestrator.export import export_json
from orchestrator.importing import Export, parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.run import Run
from orchestrator.testing import ManualClock, ScriptedGenerator
from orchestrator_events.decision import AskUser, Decision, Deny, Inject, Modify, Proceed
from orchestrator_events.event import Gate
from orchestrator_events.journal import Batch
from orchestrator_events.question import Question
from orchestrator_events.record import GENESIS, chain_digest
from orchestrator_events.run import EvaluationRequested, GenerationRequested, RefinementRequested

SPEC = MergedSpec(
    name="colours",
    intent="Name the colours — all of them.\r\n",
    constraints=(Constraint(id="one-line", text="One line."),),
    avoid="Other words.",
    interface="A text.",
    threat_model="None to speak of.",
    evals=(EvalCase(name="red", severity="critical"), EvalCase(name="green")),
)
RUN_ID = "7f3a"


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    text = submission.candidate.text
    return Verdict.of({case.name: case.name in text or f"no {case.name}" for case in submission.spec.evals})


def broken(_: Submission) -> Verdict:
    """No verdict."""
    raise EvaluationError("the runner is broken")


def costly(text: str, **usage: int) -> Generation:
    """An answer with its reported use."""
    return Generation(candidate=Candidate(text), usage=Usage(**usage))


@attrs.frozen(kw_only=True)
class Course:
    """A way for a run to go: what is configured, and what the generator answers."""

    answers: tuple[object, ...]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    gates: tuple[tuple[type[Gate], Decision], ...] = ()
    last: str = "raise"


class Yes:
    """An approver who says yes."""

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """Approve."""
        return True


@attrs.frozen
class Faulty:
    """A strategy that fails when it is needed."""

    name: str = "faulty"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """Fail from the second attempt on."""
        if attempt is None:
            return Refinement()
        raise RuntimeError("no idea")


async def never(_: object) -> str:
    """An answer that does not come."""
    await asyncio.Event().wait()
    return ""


COURSES: dict[str, Course] = {
    "passed at once": Course(answers=("red green",)),
    "passed after failures": Course(
        answers=("", "red", "red", "blue", ValueError("down"), "red green"), options={"budget": Budget(attempts=9)}
    ),
    "files": Course(answers=({"a.txt": "red", "b/c.txt": "é"}, "green", "red green")),
    "exhausted by attempts": Course(answers=("red", "green"), options={"budget": Budget(attempts=2)}),
    "exhausted by repeats": Course(answers=("red",), last="repeat", options={"budget": Budget(attempts=9, repeats=2)}),
    "exhausted by tokens": Course(
        answers=(costly("red", input_tokens=300, output_tokens=9), costly("blue", input_tokens=300, output_tokens=9)),
        last="repeat",
        options={"budget": Budget(attempts=None, tokens=700)},
    ),
    "exhausted by input tokens": Course(
        answers=(costly("red", input_tokens=300),),
        last="repeat",
        options={"budget": Budget(attempts=9, input_tokens=400, repeats=None)},
    ),
    "exhausted by output tokens": Course(
        answers=(costly("red", output_tokens=300),),
        last="repeat",
        options={"budget": Budget(attempts=9, output_tokens=400, repeats=None)},
    ),
    "exhausted by money": Course(
        answers=(costly("red", money_micro=60), costly("blue", money_micro=60)),
        options={"budget": Budget(attempts=9, money_micro=100)},
    ),
    "overrun": Course(
        answers=(costly("red", output_tokens=90_000),), options={"budget": Budget(attempts=9, tokens=1_000)}
    ),
    "overrun of max tokens": Course(
        answers=(costly("red", output_tokens=90),),
        options={"budget": Budget(attempts=9, tokens=10_000), "parameters": {"max_tokens": 50}},
    ),
    "overrun and passed": Course(
        answers=(costly("red green", output_tokens=90_000),), options={"budget": Budget(attempts=9, tokens=1_000)}
    ),
    "failed call overruns": Course(
        answers=(costly("", output_tokens=90_000),), options={"budget": Budget(attempts=9, tokens=1_000)}
    ),
    "exhausted by time in a call": Course(
        answers=(never,), options={"budget": Budget(attempts=None, seconds=0.03, tokens=10_000)}
    ),
    "varied": Course(
        answers=("red", "green", "red green"),
        options={
            "strategy": ParameterVariation({"temperature": [0.1, 0.2]}),
            "parameters": {"temperature": 0, "max_tokens": 99},
        },
    ),
    "interrupted by the generator": Course(answers=("red",)),
    "interrupted by the evaluator": Course(answers=("red",), options={"evaluator": broken}),
    "denied": Course(answers=("red",), gates=((GenerationRequested, Deny("not today")),)),
    "denied in refinement": Course(answers=("red",), gates=((RefinementRequested, Deny("enough")),)),
    "not approved": Course(answers=("red",), gates=((GenerationRequested, AskUser("May I?")),)),
    "approved": Course(
        answers=("red", "red green"),
        gates=(
            (GenerationRequested, AskUser("May I?")),
            (EvaluationRequested, AskUser("Run it?")),
            (RefinementRequested, AskUser("Again?")),
        ),
        options={"approver": Yes()},
    ),
    "injected": Course(
        answers=("red", "red green"),
        gates=(
            (GenerationRequested, Inject("Be brief.")),
            (GenerationRequested, Modify({"parameters": '{"max_tokens":7}'})),
        ),
    ),
    "limited by a gate": Course(
        answers=("red", "red green"),
        gates=((GenerationRequested, Modify({"max_tokens": 70})),),
        options={"budget": Budget(tokens=9_000)},
    ),
    "asked of everyone": Course(
        answers=("red green",), gates=((GenerationRequested, Proceed()), (EvaluationRequested, Proceed()))
    ),
    "failed": Course(answers=("red",), options={"strategy": Faulty()}),
}


class BatchedJournal(MemoryJournal):
    """A journal that remembers where its batches end, which is where a crash can cut a run off."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[int] = []

    async def append(self, batch: Batch) -> None:
        """Keep a batch."""
        await super().append(batch)
        self.ends.append(batch.records[-1].sequence)


def orchestrator_of(course: Course, journal: MemoryJournal, **over: Any) -> Orchestrator:
    """What a course is run with."""
    generator = ScriptedGenerator(list(course.answers), course.last)  # type: ignore[arg-type]  # one of two words
    options: dict[str, Any] = {"evaluator": judged, "clock": ManualClock(), **course.options, **over}
    orchestrator = Orchestrator(generator=generator, journal=journal, **options)
    for gate, decision in course.gates:
        orchestrator.bus.answer(gate, always(decision))
    return orchestrator


def always(decision: Decision) -> Callable[[Question], Decision]:
    """A responder that decides one thing."""
    return lambda _: decision


def run_of(course: Course, **over: Any) -> BatchedJournal:
    """Have a run go its way; how it ends does not matter here."""
    journal = BatchedJournal()
    with suppress(OrchestratorError):
        orchestrator_of(course, journal, **over).run(SPEC, run_id=RUN_ID)
    return journal


def cut_off(journal: BatchedJournal, end: int) -> BatchedJournal:
    """The journal as a crash after this record leaves it."""
    kept = BatchedJournal()
    asyncio.run(kept.append(Batch(RUN_ID, tuple(journal.streams[RUN_ID].records[:end]))))
    return kept


def resumed(course: Course, journal: BatchedJournal, **over: Any) -> BatchedJournal:
    """The journal after an attempt to go on with its run."""
    with suppress(OrchestratorError):
        orchestrator_of(course, journal, **over).resume(RUN_ID)
    return journal


def document_of(journal: MemoryJournal) -> str:
    """The run in a journal as one JSON document."""
    return asyncio.run(export_json(journal, RUN_ID))


def links_of(bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with a chain of their own: what somebody does who rewrites a history."""
    links = []
    previous = GENESIS
    for sequence, body in enumerate(bodies, 1):
        data = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        digest = chain_digest(previous, data)
        links.append({"sequence": sequence, "previous": previous, "digest": digest, "body": body})
        previous = digest
    return links


@attrs.define
class Forgery:
    """An export in the hands of somebody who knows the form and may rewrite all of it."""

    document: dict[str, Any]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The records, to be changed."""
        return [link["body"] for link in self.document["records"]]

    def events(self, name: str) -> list[dict[str, Any]]:
        """The fields of every event of this name, to be changed."""
        return [body["event"] for body in self.bodies if body["name"] == name]

    def rechain(self, bodies: list[dict[str, Any]] | None = None) -> Forgery:
        """Number and chain the records anew, state the new head, and name no text too many."""
        bodies = self.bodies if bodies is None else bodies
        for sequence, body in enumerate(bodies, 1):
            body["sequence"] = sequence
        links = links_of(bodies)
        self.document["records"] = links
        self.document["head"] = {"digest": links[-1]["digest"], "count": len(links)}
        shown = json.dumps(bodies)
        self.document["blobs"] = {digest: text for digest, text in self.document["blobs"].items() if digest in shown}
        return self

    def blob(self, text: str) -> dict[str, Any]:
        """Add a text; what a record says of it."""
        digest = sha256(text.encode()).hexdigest()
        self.document["blobs"][digest] = text
        return {"bytes": len(text.encode()), "sha256": digest}

    def export(self) -> Export:
        """What an auditor gets."""
        return parse_export(json.dumps(self.document))


@cache
def document_named(name: str) -> str:
    """The run of a course as one JSON document."""
    return document_of(run_of(COURSES[name]))


@pytest.fixture(params=sorted(COURSES))
def course(request: pytest.FixtureRequest) -> str:
    """Every course by name, one after the other."""
    return str(request.param)


@pytest.fixture
def exported() -> Callable[[str], str]:
    """The run of a course as one JSON document."""
    return document_named


@pytest.fixture
def forge() -> Callable[[str], Forgery]:
    """The run of a course in the wrong hands."""
    return lambda name: Forgery(json.loads(document_named(name)))


@pytest.fixture
def resumptions() -> Callable[[str], Iterator[tuple[str, str]]]:
    """Every way to cut the run of a course off and resume it: how, and the run as one JSON document."""

    def resumed_runs(name: str) -> Iterator[tuple[str, str]]:
        course, whole = COURSES[name], run_of(COURSES[name])
        for end in whole.ends[:-1]:
            once = resumed(course, cut_off(whole, end))
            yield f"cut off after {end}", document_of(once)
            for again in once.ends[1:-1]:
                yield f"cut off after {end} and {again}", document_of(resumed(course, cut_off(once, again)))
        raised = Budget(
            attempts=20, seconds=0.1 if "time" in name else 1_000, tokens=200_000, input_tokens=100_000,
            output_tokens=150_000, money_micro=1_000_000,
        )  # fmt: skip
        for number in (1, 2):
            whole = resumed(course, whole, budget=raised)
            yield f"limits raised, {number}", document_of(whole)

    return resumed_runs

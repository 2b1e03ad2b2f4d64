"""The ports: what a host plugs into the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import attrs

from orchestrator.candidate import Candidate
from orchestrator.nesting import Nest
from orchestrator_events.budget import Usage
from orchestrator_events.verdict import CaseResult, CaseStatus

if TYPE_CHECKING:
    from orchestrator.attempt import Attempt
    from orchestrator.run import Run
    from orchestrator.spec import MergedSpec

__all__ = [
    "Approver",
    "Evaluator",
    "Generation",
    "Generator",
    "Refinement",
    "Request",
    "Strategy",
    "Submission",
    "Verdict",
]

UNSENT = {"is_sent": False}
"""Metadata of a field that no generating program is sent."""

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]


@attrs.define(kw_only=True)
class Request:
    """What a generator is asked."""

    run_id: str
    attempt: int
    """Number of the attempt, from 1."""
    prompt: str
    parameters: Mapping[str, JSON]
    """Generation parameters, as configured and varied by the strategy."""
    language: str
    """Target language of the candidate."""
    max_tokens: int | None
    """Output tokens that are reserved; a generator must not use more. None: not limited."""
    seconds: float | None
    """Time the call has; None without a time limit. The engine enforces it either way."""
    idempotency_key: str
    """The same when a call is made again after a crash."""
    spec_digest: str
    progress: Callable[[int], None] | None = attrs.field(default=None, repr=False, eq=False, metadata=UNSENT)
    """To be told the output tokens so far, from the loop's own thread, as often as one likes; None: nobody asks."""
    nest: Nest | None = attrs.field(default=None, repr=False, eq=False, metadata=UNSENT)
    """Where a generator whose class says `nests = True` starts runs of its own; None for every other."""


@attrs.define(kw_only=True)
class Generation:
    """What a generator answers: a candidate, and what it used if it knows."""

    candidate: Candidate
    usage: Usage | None = None
    answer: str = ""
    """The raw answer, where the candidate was extracted from it."""
    extraction: str = ""
    """Rule by which it was."""


@attrs.define(kw_only=True)
class Submission:
    """What an evaluator judges."""

    run_id: str
    attempt: int
    candidate: Candidate
    spec: MergedSpec
    expected: frozenset[str] | None = attrs.field(
        default=attrs.Factory(lambda self: self.spec.expected_cases, takes_self=True)
    )
    """Ids of the cases that must pass, as the spec names them or a trusted run pinned them; None: nobody knows."""
    language: str
    seconds: float | None
    """Time the evaluation has; None without a time limit."""


@attrs.define
class Verdict:
    """What an eval suite reported: one result a case, in its own order. An empty one is no verdict."""

    results: tuple[CaseResult, ...] = attrs.field(converter=tuple[CaseResult, ...])
    isolation: str = "none"
    """What the suite ran under, as `Isolation.label` words it."""
    integrity: str = "host"
    """separate: the judge is in a process the candidate is not in; cooperative: they share one; host: unstated."""

    @classmethod
    def of(cls, cases: Mapping[str, bool | str] | Iterable[CaseResult]) -> Verdict:
        """A verdict from case results, or from a mapping of case id to True, False or a failure message."""
        if not isinstance(cases, Mapping):
            return cls(tuple(cases))
        return cls(
            tuple(
                CaseResult(case, CaseStatus.PASSED)
                if outcome is True
                else CaseResult(case, CaseStatus.FAILED, outcome or "")
                for case, outcome in cases.items()
            )
        )


class Generator(Protocol):
    """Produces candidates. It is untrusted: it may raise, hang, flood or lie (contract 1, threat model).

    `name` identifies it in records and over a resume. Raise GeneratorUnavailableError when trying again is
    pointless (not found, not authorised); any other error costs the attempt and is fed back. One that reads its
    answers in a form of its own says so in an attribute `answer_instruction`, a sentence that prompts then end
    their task with; without one, the answer is to be the candidate and nothing else.
    """

    name: str
    isolation: str
    """Level it runs under: none, or what a sandbox reported."""
    max_prompt_characters: int | None
    """The longest prompt it takes; a spec that does not fit is refused before anything is spent."""

    async def generate(self, request: Request) -> Generation:
        """Answer one request."""
        ...


class Evaluator(Protocol):
    """Runs the eval suite on a candidate. Any error it raises means "no verdict" and interrupts the run."""

    name: str

    async def evaluate(self, submission: Submission) -> Verdict:
        """Judge one candidate, case by case."""
        ...


@attrs.define(kw_only=True)
class Refinement:
    """What a strategy changes for the next attempt. The ids of all failing cases are in the prompt anyway."""

    shows_details: bool = True
    """Whether the prompt shows the failure messages and the closest candidate, or the failing ids alone."""
    parameters: Mapping[str, JSON] = attrs.field(factory=dict)
    """Generation parameters to change."""
    seed: str = ""
    """Label of the code seed to mix in; empty for none."""
    notes: tuple[str, ...] = ()
    """Sentences to add to the prompt."""


class Strategy(Protocol):
    """Decides what changes between attempts; pure, so that a run can be replayed (contract 1)."""

    @property
    def name(self) -> str:
        """Name and parameters, as they are recorded."""
        ...

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:
        """What changes after this failed attempt; None before the first."""
        ...


class Approver(Protocol):
    """Asks a person. Silence and errors are a no; NobodyToAskError lets a plan wait until somebody is there."""

    async def approve(self, run_id: str, prompt: str) -> bool:
        """Whether the person said yes."""
        ...

"""A generator that plays back what another one answered in an earlier run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.outcome import RunReport
from orchestrator.ports import Generation, Request
from orchestrator_events.budget import Charge, Usage
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, CandidateGenerated

__all__ = ["RecordedGenerator"]

Answers = Mapping[int, Generation | GenerationError]


def frozen_answers(answers: Answers) -> Answers:
    """A copy that nobody can change."""
    return MappingProxyType(dict(answers))


@attrs.define(eq=False)
class RecordedGenerator:
    """Answers attempt n as attempt n was answered before, whatever the prompt says and in whatever process.

    Failed generations fail again with the recorded reason; an attempt that the recording does not hold makes
    the generator unavailable, which interrupts the run. Its name says that it is a recording, and of what.

    >>> from orchestrator import MergedSpec, Orchestrator
    >>> spec = MergedSpec(intent="Set x to 1.")
    >>> judge = lambda submission: {"x is 1": submission.candidate.text == "x=1"}
    >>> first = Orchestrator(generator=RecordedGenerator.of(["x=0", "x=1"]), evaluator=judge).run(spec)
    >>> again = Orchestrator(generator=RecordedGenerator.from_report(first), evaluator=judge).run(spec)
    >>> again.generator, again.status, again.candidate == first.candidate
    ('recorded recording', 'passed', True)
    """

    answers: Answers = attrs.field(converter=frozen_answers)
    """Attempt number, from 1, to what was answered."""
    name: str = "recording"
    isolation: str = attrs.field(default="none", init=False)
    max_prompt_characters: int | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, texts: Iterable[str | Candidate], name: str = "recording") -> RecordedGenerator:
        """A recording from the candidates alone, in order of attempt from 1."""
        candidates = (text if isinstance(text, Candidate) else Candidate(text) for text in texts)
        return cls({number: Generation(candidate=each) for number, each in enumerate(candidates, 1)}, name)

    @classmethod
    def from_report(cls, report: RunReport) -> RecordedGenerator:
        """A recording of the run that a result, or the report of an interrupted run, tells of."""
        return cls.from_records(report.records, f"recorded {report.generator}")

    @classmethod
    def from_records(cls, records: Iterable[Record], name: str = "recording") -> RecordedGenerator:
        """A recording from a run's records with their blobs loaded, as a journal gives them."""
        answers: dict[int, Generation | GenerationError] = {}
        for record in records:
            match record.event:
                case CandidateGenerated(attempt=attempt, candidate=blob, form=form, charge=charge):
                    candidate = Candidate.from_blob(blob, form)
                    answers[attempt] = Generation(candidate=candidate, usage=usage_of(charge))
                case AttemptFailed(attempt=attempt, stage="generation", error=error):
                    answers[attempt] = GenerationError(error)
        return cls(answers, name)

    async def generate(self, request: Request) -> Generation:
        """The recorded answer of the request's attempt."""
        answer = self.answers.get(request.attempt)
        if answer is None:
            raise GeneratorUnavailableError(
                f"{self.name} holds attempts {sorted(self.answers)}, not {request.attempt}: "
                "lower the budget's attempts or record more"
            )
        if isinstance(answer, GenerationError):
            raise GenerationError(answer.reason)
        return answer


def usage_of(charge: Charge) -> Usage | None:
    """The usage behind a charge; None where a figure was an estimate, so that it is estimated again."""
    if charge.estimated:
        return None
    return Usage(input_tokens=charge.input_tokens, output_tokens=charge.output_tokens, money_micro=charge.money_micro)

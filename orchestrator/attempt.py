"""One attempt of a run, told by its own events."""

from __future__ import annotations

import json
from typing import Any

import attrs

from orchestrator.candidate import Candidate
from orchestrator_events.budget import Charge
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    AttemptPassed,
    CandidateGenerated,
    GenerationStarted,
    PromptReady,
)
from orchestrator_events.verdict import CaseResult

__all__ = ["Attempt"]


@attrs.define
class Attempt:
    """What was asked, what was answered, and what the suite said (contract 1, record-full-history)."""

    ready: PromptReady
    started: GenerationStarted | None = None
    generated: CandidateGenerated | None = None
    outcome: AttemptFailed | AttemptPassed | None = None
    """None for an attempt that was cut off before it was judged."""
    answer: AnswerReceived | None = None
    """The raw answer, where the generator's adapter extracted the candidate from it, or could not."""

    @property
    def number(self) -> int:
        """Number of the attempt, from 1."""
        return self.ready.attempt

    @property
    def prompt(self) -> str:
        """The prompt as it was sent."""
        sent = self.started.prompt if self.started is not None else None
        return (sent or self.ready.prompt).data.decode()

    @property
    def parameters(self) -> dict[str, Any]:
        """The generation parameters actually sent."""
        found: dict[str, Any] = json.loads((self.started or self.ready).parameters)
        return found

    @property
    def seed(self) -> str:
        """Label of the code seed that was mixed in; empty without one."""
        return self.ready.seed

    @property
    def candidate(self) -> Candidate | None:
        """The candidate, exactly as generated; None when the generation failed."""
        generated = self.generated
        return None if generated is None else Candidate.from_blob(generated.candidate, generated.form)

    @property
    def passed(self) -> tuple[str, ...]:
        """Ids of the cases that passed."""
        return self.outcome.passed if self.outcome is not None else ()

    @property
    def failing(self) -> tuple[CaseResult, ...]:
        """The cases that did not pass."""
        return self.outcome.failing if isinstance(self.outcome, AttemptFailed) else ()

    @property
    def error(self) -> str:
        """Why no candidate came; empty otherwise."""
        return self.outcome.error if isinstance(self.outcome, AttemptFailed) else ""

    @property
    def remedy(self) -> str:
        """What the host could change, where that is known, so that a candidate comes; never in a prompt."""
        return self.outcome.remedy if isinstance(self.outcome, AttemptFailed) else ""

    @property
    def repeats(self) -> int:
        """How many times in a row this same candidate came, after the first."""
        return self.outcome.repeats if isinstance(self.outcome, AttemptFailed) else 0

    @property
    def generator_isolation(self) -> str:
        """What held the generator, in words; empty when it was not called."""
        if self.generated is not None:
            return self.generated.isolation
        return self.outcome.isolation if isinstance(self.outcome, AttemptFailed) and self.error else ""

    @property
    def evaluator_isolation(self) -> str:
        """What held the evaluation, in words; empty when there was none."""
        return self.outcome.isolation if self.was_evaluated and self.outcome is not None else ""

    @property
    def integrity(self) -> str:
        """separate, cooperative or host: who held the judge; empty when nothing was judged."""
        return self.outcome.integrity if self.was_evaluated and self.outcome is not None else ""

    @property
    def was_evaluated(self) -> bool:
        """Whether the suite was run in this attempt, rather than a verdict reused or no candidate given."""
        if isinstance(self.outcome, AttemptFailed):
            return self.outcome.stage == "evaluation" and not self.outcome.reused_from
        return self.outcome is not None

    @property
    def is_conforming(self) -> bool:
        """Whether every expected case passed."""
        return isinstance(self.outcome, AttemptPassed)

    @property
    def charge(self) -> Charge | None:
        """What the generator call was charged; None when it was never made."""
        if self.generated is not None:
            return self.generated.charge
        return self.outcome.charge if isinstance(self.outcome, AttemptFailed) else None

    def is_closer_than(self, other: Attempt | None) -> bool:
        """Most cases passed, then fewest critical failures; on a tie the earlier attempt stays."""
        if other is None:
            return True
        mine, best = len(self.passed), len(other.passed)
        if mine != best:
            return mine > best
        worst = critical(other.failing)
        return worst > 0 and critical(self.failing) < worst


def critical(failing: tuple[CaseResult, ...]) -> int:
    """How many of the failing cases the spec calls critical."""
    return [case.severity for case in failing].count("critical")

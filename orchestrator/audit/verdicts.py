"""Verdicts: each follows from the cases that the spec expects, and a candidate is judged once."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.run import Run
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, AttemptPassed
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["Verdicts"]

REFUSED = "(candidate)"
"""The case of a candidate that could not be laid beside the suite."""


@attrs.define(eq=False)
class Verdicts:
    """Holds every verdict against the spec and against earlier verdicts on the same candidate."""

    name: str = attrs.field(default="verdicts", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """Verdicts that cannot be right."""
        event = record.event
        if isinstance(event, AttemptPassed):
            yield from passed(run, event)
        elif isinstance(event, AttemptFailed):
            match event.stage:
                case "generation":
                    yield from not_generated(run, event)
                case "evaluation":
                    yield from not_conforming(run, event)
                case stage:
                    yield f"failed at the stage {stage!r:.80}, which there is not"

    def end(self, run: Run) -> Iterator[str]:  # noqa: ARG002 -- every verdict has been read
        """Nothing."""
        yield from ()


def passed(run: Run, event: AttemptPassed) -> Iterator[str]:
    """Exactly the expected cases passed, each once."""
    expected = run.expectation.expected
    if run.generated is None:
        yield "passed without a candidate"
    if len(set(event.passed)) != len(event.passed) or not event.passed:
        yield "names no case, or one twice"
    if expected is not None and set(event.passed) != expected:
        differing = sorted(expected ^ set(event.passed))
        yield f"passed other cases than are expected: {', '.join(differing):.200}"
    if event.is_pinned != (expected is not None):
        yield f"says that the expected cases were {'' if event.is_pinned else 'not '}named beforehand"
    if run.generated is not None and (run.generated.form, run.generated.candidate.data) in run.verdicts:
        yield "passed, though the same candidate failed before"


def not_generated(run: Run, event: AttemptFailed) -> Iterator[str]:
    """A failed generation has an error and a charge, and no verdict."""
    if run.generated is not None:
        yield "failed to generate, though there is a candidate"
    if not event.error or event.charge is None:
        yield "failed to generate without an error, or without a charge"
    if event.failing or event.passed or event.reused_from or event.repeats:
        yield "failed to generate, and yet has a verdict"


def not_conforming(run: Run, event: AttemptFailed) -> Iterator[str]:
    """A verdict names every expected case, and is reused when the candidate came before."""
    generated = run.generated
    if generated is None:
        yield "was evaluated without a candidate"
        return
    if event.error or event.remedy or event.charge is not None or event.key:
        yield "was evaluated, and yet has a generator's error, charge or key"
    known = run.verdicts.get((generated.form, generated.candidate.data))
    if known is None:
        if event.reused_from or event.repeats:
            yield f"reuses the verdict of attempt {event.reused_from}, whose candidate is another"
        yield from incomplete(run, event)
        return
    if (event.reused_from, event.passed, event.failing) != (known.number, known.passed, known.failing):
        yield f"is not the verdict of attempt {known.number} on the same candidate"
    last = run.last
    is_again = last is not None and last.generated is not None and last.generated.candidate == generated.candidate
    repeats = last.repeats + 1 if last is not None and is_again else 0
    if event.repeats != repeats:
        yield f"counts {event.repeats} repeats, there are {repeats}"


def incomplete(run: Run, event: AttemptFailed) -> Iterator[str]:
    """Every expected case either passed or failed; no other passed; severities are the spec's."""
    if is_refusal(event.failing) and not event.passed:
        return
    failing = [case.id for case in event.failing]
    if not failing:
        yield "did not conform, though no case failed"
    if any(case.status == CaseStatus.PASSED for case in event.failing):
        yield "counts a case that passed as failing"
    if len({*event.passed, *failing}) != len(event.passed) + len(failing):
        yield "names a case twice"
    expected = run.expectation.expected
    if expected is None:
        return
    if unnamed := sorted(expected - {*event.passed, *failing}):
        yield f"does not name expected cases: {', '.join(unnamed):.200}"
    if uncalled := sorted(set(event.passed) - expected):
        yield f"counts cases as passed that nobody expects: {', '.join(uncalled):.200}"
    for case in event.failing:
        if case.id in expected and case.severity != run.spec.severity_of(case.id):
            yield f"gives case {case.id!r:.80} the severity {case.severity!r:.80}, the spec another"


def is_refusal(failing: tuple[CaseResult, ...]) -> bool:
    """Whether the candidate could not be laid beside the suite, so that it failed as a whole."""
    return len(failing) == 1 and failing[0].id == REFUSED and failing[0].status == CaseStatus.ERROR

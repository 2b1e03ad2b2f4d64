"""Whatever a run was, its export can be put back and exported again, byte for byte."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import (
    Budget,
    Candidate,
    CaseResult,
    CaseStatus,
    Example,
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
from orchestrator.exports.document import export_json
from orchestrator.exports.lines import export_lines
from orchestrator.exports.restoring import import_export
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock
from orchestrator_events.journal import Journal

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
STATUSES = st.sampled_from([CaseStatus.PASSED, CaseStatus.FAILED, CaseStatus.ERROR, CaseStatus.SKIPPED])
TOKENS = st.none() | st.integers(0, 10**9)
USAGES = st.builds(Usage, input_tokens=TOKENS, output_tokens=TOKENS, money_micro=TOKENS)
FILES = st.dictionaries(st.sampled_from(["a", "b/c", "d.txt"]), TEXTS, min_size=1)
ANSWERS = st.none() | st.tuples(
    st.builds(Candidate, TEXTS) | st.builds(lambda made: Candidate(files=made), FILES), USAGES
)
VERDICTS = st.dictionaries(TEXTS.filter(bool), st.tuples(STATUSES, TEXTS), min_size=1, max_size=4)


@st.composite
def runs(draw: st.DrawFn) -> MemoryJournal:
    """The journal of a run: any answers, any verdicts, any texts; it may end in any way."""
    answers = draw(st.lists(ANSWERS, max_size=4))
    verdicts = draw(st.lists(VERDICTS, min_size=4, max_size=4))
    journal, clock = MemoryJournal(), ManualClock()
    pauses = draw(st.lists(st.integers(0, 10**7), min_size=5, max_size=5))

    def generate(request: Request) -> Generation:
        clock.advance(pauses[request.attempt % 5] / 1_000_000)
        if request.attempt > len(answers):
            raise GeneratorUnavailableError(draw(TEXTS))
        answer = answers[request.attempt - 1]
        if answer is None:
            raise ValueError("nothing came")
        return Generation(candidate=answer[0], usage=answer[1])

    def judge(submission: Submission) -> Verdict:
        cases = verdicts[(submission.attempt - 1) % 4]
        return Verdict(CaseResult(name, status, message) for name, (status, message) in cases.items())

    parameters: dict[str, Any] = draw(st.dictionaries(TEXTS, st.booleans() | st.floats(-1, 1) | TEXTS, max_size=2))
    spec = MergedSpec(intent=draw(TEXTS.filter(str.strip)), examples=(Example("one", draw(TEXTS.filter(str.strip))),))
    engine = Orchestrator(
        generator=generate, evaluator=judge, budget=Budget(attempts=draw(st.integers(1, 4)), tokens=10**10),
        journal=journal, clock=clock, parameters=parameters,
    )  # fmt: skip
    with suppress(RunInterruptedError):
        engine.run(spec, run_id="7f3a")
    return journal


async def exported(journal: Journal) -> tuple[str, str]:
    """The run in both forms."""
    lines = [line async for line in export_lines(journal, "7f3a")]
    return await export_json(journal, "7f3a"), "".join(lines)


async def copied(text: str) -> tuple[str, str]:
    """The run in both forms, once it was put back from one."""
    journal = MemoryJournal()
    await import_export(journal, parse_export(text))
    return await exported(journal)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_export_import_export_is_byte_equal(journal: MemoryJournal) -> None:
    """Export, import, export gives the same text, whichever form it goes through."""
    texts = asyncio.run(exported(journal))
    assert [asyncio.run(copied(text)) for text in texts] == [texts, texts]

"""A replay walks the recorded events through the recorded table and shows every decision; the suite may judge again."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from typing import Any

import attrs
import pytest

from orchestrator import (
    Budget,
    CaseResult,
    CaseStatus,
    EvalCase,
    EvaluationError,
    MergedSpec,
    Orchestrator,
    OrchestratorError,
    ParameterVariation,
    Verdict,
)
from orchestrator.export import export_json
from orchestrator.importing import Export, parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.narration import told
from orchestrator.replay import ReplayError, rejudge, replay
from orchestrator.testing import ManualClock, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.decision import Inject
from orchestrator_events.event import Event, Fact
from orchestrator_events.execution import (
    ApprovalAnswered,
    ApprovalRequested,
    ChildEnded,
    ChildStarted,
    SecretFound,
    SubscriberFailed,
)
from orchestrator_events.run import AnswerReceived, CasesPinned, GenerationRequested, GenerationRetried

SPEC = MergedSpec(intent="Count.", evals=(EvalCase(name="a"), EvalCase(name="b")))
HALF: dict[str, bool | str] = {"a": True, "b": "no"}
WHOLE: dict[str, bool | str] = {"a": True, "b": True}

DECISIONS = """\
invocation 1, limits: attempts 3, repeats 3
generator none (in-process), evaluator none (in-process)
attempt 1 by parameter-variation {"t": [7]}, parameters {}
the budget holds input_tokens N; wary: inject (Mind the gap.)
candidate 2d711642 (text), charged about N + 1 tokens, 0 micro-units
1 of 2 cases passed; failing: b
attempt 2: the strategy shows details; parameters {"t":7}
attempt 2 by parameter-variation {"t": [7]}, parameters {"t":7}
the budget holds input_tokens N; wary: inject (Mind the gap.)
candidate 2d711642 (text), charged about N + 1 tokens, 0 micro-units
the verdict of attempt 1 is reused; repeat 1 in a row; 1 of 2 cases passed; failing: b
attempt 3: the strategy shows details; parameters {"t":7}; \
The last answer was identical to that of attempt 1. Take another approach.
attempt 3 by parameter-variation {"t": [7]}, parameters {"t":7}
the budget holds input_tokens N; wary: inject (Mind the gap.)
no candidate: OSError: down, charged about N + 1 tokens, 0 micro-units
the budget refuses more: attempts: 3 of 3 attempts used
incomplete after 2 answers
completed"""


def recorded(answers: list[Any], verdicts: list[Any], **options: Any) -> Export:
    """A run, exported."""
    journal = MemoryJournal()
    orchestrator = Orchestrator(
        generator=ScriptedGenerator(answers), evaluator=ScriptedEvaluator(verdicts), journal=journal,
        clock=ManualClock(), **options,
    )  # fmt: skip
    orchestrator.bus.answer(GenerationRequested, lambda _: Inject("Mind the gap."), name="wary")
    with suppress(OrchestratorError):
        orchestrator.run(SPEC, run_id="7f3a")
    return parse_export(asyncio.run(export_json(journal, "7f3a")))


def test_decisions_in_words() -> None:
    """Gates' decisions, refusals of the budget, reuse of a verdict and the strategy's changes are told in order."""
    export = recorded(
        ["x", "x", OSError("down")], [HALF],
        budget=Budget(attempts=3), strategy=ParameterVariation({"t": [7]}),
    )  # fmt: skip
    steps = replay(export)
    told_in_order = "\n".join(step.decision for step in steps)
    assert re.sub(r"(input_tokens|about) \d+", r"\1 N", told_in_order) == DECISIONS
    way = [steps[0].source, *(step.target for step in steps if step.source != step.target)]
    assert way == [
        "ready", *["prompting", "generating", "evaluating", "refining"] * 2, "prompting", "generating", "refining",
        "exhausted",
    ]  # fmt: skip
    assert steps[0].as_json() == {
        "sequence": 1, "time": "2026-01-01T00:00:00+00:00", "source": "ready", "target": "prompting",
        "event": "execution:start", "decision": "invocation 1, limits: attempts 3, repeats 3", "run": "7f3a",
    }  # fmt: skip


@attrs.frozen
class Unheard(Fact):
    """An event of a later release."""


def test_rare_events_in_words() -> None:
    """What few runs hold is told as well; what nobody knows is left empty."""
    events: tuple[Event, ...] = (
        ApprovalRequested(gate="g", prompt="May I?"),
        ApprovalAnswered(gate="g", is_approved=False, answer="nobody to ask"),
        SubscriberFailed(subscriber="s", event="e", error="E: x"),
        ChildStarted(child_id="c", lifecycle="run"),
        ChildEnded(child_id="c", head="0" * 64, count=3, status="passed"),
        GenerationRetried(attempt=1, key="k", retry=2, reason="busy", wait_us=1_500_000, charge=Charge()),
        AnswerReceived(attempt=1, key="k", answer=Blob("x"), extraction="fenced"),
        AnswerReceived(attempt=1, key="k", answer=Blob("x"), extraction=""),
        CasesPinned(cases=("a", "b"), controls=("c",)),
        CasesPinned(cases=(), controls=("c",)),
        SecretFound(secret="key", place="file a.py"),
        SecretFound(secret="key", place="file a.py", is_refused=True),
        Unheard(),
    )
    assert [told(event) for event in events] == [
        "a person is asked at g: May I?",
        "refused: nobody to ask",
        "s failed at e: E: x",
        "child c (run)",
        "child c: passed, 3 records, head 00000000",
        "retry 2 after 1.5 s: busy",
        "answer 2d711642, the candidate by fenced",
        "answer 2d711642, no candidate could be taken from it",
        "exactly 2 cases must pass; must fail: c",
        "must fail: c",
        "the secret key stands in file a.py; kept",
        "the secret key stands in file a.py; refused",
        "",
    ]


def changed(export: Export, position: int, **fields: Any) -> Export:
    """The export with other fields in one record."""
    body = {**json.loads(export.links[position].body), **fields}
    links = list(export.links)
    links[position] = attrs.evolve(
        links[position], body=json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    )
    return attrs.evolve(export, links=tuple(links))


def test_difference() -> None:
    """The replay ends at the first record that does not follow, with the steps before it."""
    export = recorded(["x"], [WHOLE])
    tables = {**export.table, "rows": list(export.table["rows"])[1:]}
    cases = {
        "another target": (changed(export, 4, target="passed"), 5, "replaying it leads from generating to evaluating"),
        "another sequence": (changed(export, 4, sequence=9), 5, "it says record 9"),
        "an unknown event": (changed(export, 4, name="x:y"), 5, "unknown event 'x:y'"),
        "an illegal event": (
            attrs.evolve(export, links=(*export.links[:2], *export.links[3:])),
            3,
            "is illegal in state",
        ),
        "another table": (
            attrs.evolve(export, table={**export.table, "name": "walk"}),
            1,
            "was decided by another table",
        ),
        "a table of no use": (attrs.evolve(export, table=tables), 0, "nothing leads to"),
        "no table": (attrs.evolve(export, table={}), 0, "malformed table"),
    }
    for name, (tampered, sequence, reason) in cases.items():
        with pytest.raises(ReplayError) as caught:
            replay(tampered)
        assert (caught.value.sequence, len(caught.value.steps)) == (sequence, max(0, sequence - 1)), name
        assert reason in caught.value.reason


def test_same_verdicts() -> None:
    """Every candidate that was judged is judged again, and compared case by case; messages do not count."""
    export = recorded(["x", "x", OSError("down"), "y"], [HALF, WHOLE])
    evaluator = ScriptedEvaluator([{"a": True, "b": "otherwise"}, WHOLE])
    compared = asyncio.run(rejudge(export, evaluator))
    assert [(each.attempt, each.is_same) for each in compared] == [(1, True), (4, True)]
    assert [(each.candidate.text, each.language, each.spec) for each in evaluator.submissions] == [
        ("x", "python", SPEC),
        ("y", "python", SPEC),
    ]


def test_another_verdict() -> None:
    """A suite that says something else is a difference, with both verdicts."""
    export = recorded(["x"], [WHOLE])
    now = Verdict((CaseResult("a", CaseStatus.PASSED), CaseResult("b", CaseStatus.ERROR, "broke")))
    (compared,) = asyncio.run(rejudge(export, ScriptedEvaluator([now])))
    assert compared.as_json() == {
        "attempt": 1,
        "is_same": False,
        "was": {"passed": ["a", "b"], "failing": {}},
        "now": {"passed": ["a"], "failing": {"b": "error"}},
    }


def test_no_verdict() -> None:
    """A suite that breaks gives no comparison."""
    with pytest.raises(EvaluationError, match="attempt 1: OSError: gone"):
        asyncio.run(rejudge(recorded(["x"], [WHOLE]), ScriptedEvaluator([OSError("gone")])))

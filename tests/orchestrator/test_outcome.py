"""Results: what each ending carries, and how it looks as plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator import (
    Budget,
    Candidate,
    Exhausted,
    Generation,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    OrchestratorError,
    Passed,
    RunInterruptedError,
    Usage,
)
from orchestrator.testing import ManualClock, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.codec import encode
from orchestrator_events.record import GENESIS, chain_digest

SPEC = MergedSpec(name="one", intent="Set x to 1.")


def engine(answers: list[Any], verdicts: list[Any], **options: Any) -> Orchestrator:
    """An orchestrator on scripts, under a clock that stands still."""
    options.setdefault("budget", Budget(attempts=2))
    return Orchestrator(
        generator=ScriptedGenerator(answers), evaluator=ScriptedEvaluator(verdicts), clock=ManualClock(), **options
    )


def test_exhausted_as_plain_data() -> None:
    """The whole result, field by field."""
    used = Usage(input_tokens=30, output_tokens=4, money_micro=2)
    answers = [Generation(candidate=Candidate("x = 0"), usage=used), OSError("down")]
    made = engine(answers, [{"a": True, "b": "0 != 1"}], budget=Budget(attempts=2, money_micro=99))
    result = made.run(SPEC, run_id="r")
    first, second = result.history
    attempt = {
        "attempt": 1,
        "parameters": {},
        "seed": "",
        "prompt": first.ready.prompt.digest,
        "candidate": Candidate("x = 0").digest,
        "passed": ["a"],
        "failing": [{"id": "b", "status": "failed", "message": "0 != 1", "severity": ""}],
        "error": "",
        "remedy": "",
        "answer": None,
        "extraction": "",
        "generator_isolation": "none (in-process)",
        "evaluator_isolation": "none (in-process)",
        "integrity": "host",
        "reused_from": 0,
        "charge": {"input_tokens": 30, "output_tokens": 4, "money_micro": 2, "estimated": False},
    }
    failed = {
        **attempt,
        "attempt": 2,
        "prompt": second.ready.prompt.digest,
        "candidate": None,
        "passed": [],
        "failing": [],
        "error": "OSError: down",
        "remedy": "",
        "evaluator_isolation": "",
        "integrity": "",
        "charge": {
            "input_tokens": result.usage.input_tokens - 30,
            "output_tokens": 1,
            "money_micro": 97,
            "estimated": True,
        },
    }
    held = {
        "level": "none",
        "backend": "in-process",
        "version": "",
        "probes": [],
        "limits": [],
        "not_enforced": ["files", "network", "memory", "processes", "environment", "end of a call that hangs"],
    }
    assert json.loads(json.dumps(result.as_json())) == {
        "kind": "workflow result; not a verification for deployment",
        "status": "exhausted",
        "run": "r",
        "state": "exhausted",
        "spec": {"name": "one", "digest": SPEC.digest},
        "language": "python",
        "generator": "scripted",
        "evaluator": "scripted",
        "strategy": "failure-feedback",
        "isolation": {"required": "none", "generator": held, "evaluator": held},
        "integrity": "host",
        "is_pinned": False,
        "attempts": 2,
        "generator_invocations": 2,
        "usage": {
            "input_tokens": result.usage.input_tokens,
            "output_tokens": 5,
            "money_micro": 99,
            "active_us": 0,
            "is_estimated": True,
        },
        "closest": attempt,
        "history": [attempt, failed],
        "errors": ["OSError: down"],
        "journal_head": {"digest": result.journal_head.digest, "count": len(result.records)},
        "limit": "attempts",
        "detail": "2 of 2 attempts used",
        "candidate": {"sha256": Candidate("x = 0").digest, "text": "x = 0"},
    }


def test_passed_as_plain_data() -> None:
    """A pass shows its candidate, text or files, whole and by digest."""
    files = Candidate(files={"b.py": "y = 2", "a.py": "x = 1"})
    result = engine([files], [{"a": True}]).run(SPEC)
    assert isinstance(result, Passed)
    assert (result.as_json()["status"], result.as_json()["candidate"]) == (
        "passed",
        {"sha256": files.digest, "files": {"a.py": "x = 1", "b.py": "y = 2"}},
    )


def test_report_of_an_interruption_as_plain_data() -> None:
    """A run without a result has a report of the same form, its status open."""
    with pytest.raises(RunInterruptedError) as caught:
        engine([GeneratorUnavailableError("401")], []).run(SPEC, run_id="r")
    shown = caught.value.report.as_json()
    assert (shown["status"], shown["state"], shown["history"], shown["closest"]) == ("open", "generating", [], None)


def test_errors_name_the_run_and_the_reason() -> None:
    """An ending without a result is one of ours, says which run, where it stands, and what broke it."""
    with pytest.raises(OrchestratorError) as caught:
        engine([GeneratorUnavailableError("401: check the key")], []).run(SPEC, run_id="r")
    assert str(caught.value) == (
        "run r interrupted in state generating: the generator is unavailable: 401: check the key"
    )
    assert isinstance(caught.value.__cause__, GeneratorUnavailableError)


def test_head_is_the_chain_of_the_records() -> None:
    """The published head is the hash chain over the records: any change of them shows."""
    result = engine(["x"], [{"a": True}]).run(SPEC)
    digest = GENESIS
    for record in result.records:
        digest = chain_digest(digest, encode(record))
    assert (result.journal_head.digest, result.journal_head.count) == (digest, len(result.records))


def test_equal_runs_have_equal_heads() -> None:
    """Nothing but clock and run id differs between two runs that did the same."""
    heads = [engine(["x", "y"], [{"a": "no"}, {"a": True}]).run(SPEC, run_id="r").journal_head for _ in range(2)]
    assert heads[0] == heads[1]


def test_results_are_values_of_their_run() -> None:
    """A result cannot be changed."""
    result = engine(["x", "y"], [{"a": "no"}, {"a": "no"}]).run(SPEC)
    assert isinstance(result, Exhausted)
    with pytest.raises(AttributeError):
        result.limit = "seconds"  # type: ignore[misc]

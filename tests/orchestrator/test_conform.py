"""Several generators on one spec, each in runs of its own, outcomes in a lockfile."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator import Budget, GeneratorUnavailableError, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.conform import Lockfile, conform, read_lockfile, write_lockfile
from orchestrator.errors import DocumentError
from orchestrator.testing import ScriptedGenerator

SPEC = MergedSpec(name="greeting", intent="Say hello.")


def judge(submission: Submission) -> Verdict:
    """Passes what says hello."""
    return Verdict.of({"says-hello": "hello" in submission.candidate.text or "no greeting"})


def engine(name: str, *answers: str | Exception) -> Orchestrator:
    """An orchestrator with one scripted generator."""
    generator = ScriptedGenerator(list(answers), name=name)
    return Orchestrator(generator=generator, evaluator=judge, budget=Budget(attempts=2), new_id=lambda: f"run-{name}")


def test_each_generator_has_its_own_run_and_line() -> None:
    """A pass, an exhaustion and an unavailable generator are three outcomes; none stops the others."""
    lockfile = conform(
        [engine("one", "hello"), engine("two", "bye", "ciao"), engine("three", GeneratorUnavailableError("gone"))],
        SPEC,
        at_once=3,
    )
    assert (lockfile.spec, lockfile.spec_digest, lockfile.is_conforming) == ("greeting", SPEC.digest, False)
    assert [(each.generator, each.run, each.outcome, each.attempts) for each in lockfile.generators] == [
        ("one", "run-one", "passed", 1),
        ("two", "run-two", "exhausted", 2),
        ("three", "run-three", "interrupted", 1),
    ]
    assert [each.detail for each in lockfile.generators] == [
        "",
        "attempts: 2 of 2 attempts used",
        "the generator is unavailable: gone",
    ]


def test_the_lockfile_survives_the_disk(tmp_path: Path) -> None:
    """What is written is read back equal; a damaged file lists its faults."""
    lockfile = conform([engine("one", "hello")], SPEC)
    write_lockfile(lockfile, tmp_path / "lock.json")
    assert read_lockfile(tmp_path / "lock.json") == lockfile
    assert list(tmp_path.iterdir()) == [tmp_path / "lock.json"]
    (tmp_path / "lock.json").write_text('{"spec": 1, "generatorz": []}')
    with pytest.raises(DocumentError) as caught:
        read_lockfile(tmp_path / "lock.json")
    assert len(caught.value.faults) >= 3


def test_two_generators_of_one_name_are_refused() -> None:
    """The lockfile could not tell them apart, and a mixture is what contract 1 forbids."""
    with pytest.raises(ValueError, match="different names"):
        conform([engine("one", "hello"), engine("one", "hello")], SPEC)


def test_an_empty_lockfile_conforms_to_nothing() -> None:
    """No generator at all is refused rather than counted as conforming."""
    with pytest.raises(ValueError, match="different names"):
        conform([], SPEC)
    assert Lockfile(spec="s", spec_digest="d", language="python", generators=()).is_conforming is False

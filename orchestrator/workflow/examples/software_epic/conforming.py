"""The implementing phase's work: a conformance run of a story's spec, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.candidate import Candidate
from orchestrator.configuration import PYTEST
from orchestrator.engine import Orchestrator
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.outcome import Exhausted, Passed
from orchestrator.ports import Generator, Submission, Verdict
from orchestrator.workflow.components.bundle import Components
from orchestrator.workflow.examples.software_epic.epics import Epic
from orchestrator.workspace import read_files, write_files
from orchestrator_events.budget import Budget

__all__ = ["conformed", "keep_module", "tested"]

ATTEMPTS = 3
LARGEST = 1_000_000
"""Largest source directory, bytes."""


async def conformed(
    components: Components, epic: Epic, story: str, notes: Iterable[str], *, part: str, generator: Generator
) -> Passed | Exhausted:
    """The result of a run inside the phase; one that was cut off goes on, and one that passed is not run again."""
    orchestrator = Orchestrator(
        generator=generator,
        evaluator=evaluator_of(epic, (story,), f"{story}.py"),
        budget=Budget(attempts=ATTEMPTS),
    )
    return await components.children.conform(epic.spec(story, notes), orchestrator, part=part)


def keep_module(workspace: Path, story: str, candidate: Candidate) -> None:
    """Write a story's module, unaltered, among those of the others."""
    source = workspace / "source"
    source.mkdir(parents=True, exist_ok=True)
    (source / f"{story}.py").unlink(missing_ok=True)  # an earlier round's, or one that a crash left
    write_files({f"{story}.py": candidate.text}, source)


async def tested(epic: Epic, stories: tuple[str, ...], workspace: Path) -> Verdict:
    """What the suites of these stories report of their modules, all in one place."""
    specs = [epic.spec(story) for story in stories]
    expected = frozenset(case for spec in specs for case in spec.expected_cases or ())
    modules: Mapping[str, str] = read_files(workspace / "source", LARGEST)
    candidate = Candidate(files={name: text for name, text in modules.items() if name.endswith(".py")})
    submission = Submission(
        run_id="tests",
        attempt=1,
        candidate=candidate,
        spec=specs[-1],
        expected=expected,
        language="python",
        seconds=None,
    )
    return await evaluator_of(epic, stories).evaluate(submission)


def evaluator_of(epic: Epic, stories: Iterable[str], candidate_file: str = "") -> CommandEvaluator:
    """The suites of stories, run by pytest."""
    suite = {name: text for story in stories for name, text in epic.suite(story).items()}
    return CommandEvaluator(PYTEST, suite=suite, candidate_file=candidate_file, name="pytest")

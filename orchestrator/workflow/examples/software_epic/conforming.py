"""The implementing phase's work: a conformance run of a story's spec, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.candidate import Candidate
from orchestrator.configuration import PYTEST
from orchestrator.engine import Orchestrator
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.history import load_run, report_of
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.outcome import RunReport
from orchestrator.ports import Generator, Submission, Verdict
from orchestrator.workflow.examples.software_epic.epics import Epic
from orchestrator.workspace import read_files, write_files
from orchestrator_events.budget import Budget
from orchestrator_states.run import RunState

__all__ = ["conformed", "keep_module", "tested"]

ATTEMPTS = 3
LARGEST = 1_000_000
"""Largest source directory, bytes."""


async def conformed(
    epic: Epic, story: str, notes: Iterable[str], *, run_id: str, generator: Generator, workspace: Path
) -> RunReport:
    """The run's result; one that was cut off goes on, and one that passed is not run again."""
    with journal_in(workspace) as journal:
        orchestrator = Orchestrator(
            generator=generator,
            evaluator=evaluator_of(epic, (story,), f"{story}.py"),
            budget=Budget(attempts=ATTEMPTS),
            journal=journal,
        )
        if run_id not in await journal.run_ids():
            return await orchestrator.arun(epic.spec(story, notes), run_id=run_id)
        run = await load_run(journal, run_id)
        if run.state in (RunState.PASSED, RunState.EXHAUSTED):
            return report_of(run)
        return await orchestrator.aresume(run_id)


def journal_in(workspace: Path) -> SqliteJournal:
    """The journal of the conformance runs, beside the modules they write."""
    workspace.mkdir(parents=True, exist_ok=True)
    return SqliteJournal(workspace / "conformance.sqlite")


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

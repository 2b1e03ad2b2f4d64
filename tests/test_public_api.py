"""The names a host may import, and that a type checker understands their use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import orchestrator

CHECKOUT = Path(__file__).parents[1]

NAMES = """
    Approver Attempt Augmentations Budget Bus Candidate CaseResult CaseStatus CodeSeed Composition
    Constraint EvalCase EvalKind EvaluationError Evaluator Example Exhausted FailureFeedback
    Generation GenerationError Generator GeneratorUnavailableError Isolation
    IsolationRefusedError MergedSpec NaiveRetry
    Orchestrator OrchestratorError ParameterVariation Passed PromptTemplate Refinement Request RetryPolicy
    RunCancelledError RunFailedError RunInterruptedError RunReport RunState
    SecretExposedError Secrets SeedMixing
    SpecTooLargeError Strategy Submission TransientGenerationError UnfitSecretError
    Usage Verdict __version__ events load_spec states
"""

WRONG_USE = """
from orchestrator import Budget, Candidate, MergedSpec, Orchestrator, Request, Submission

def generate(request: Request) -> int:
    return 1

def evaluate(submission: Submission) -> bool:
    return True

Budget(attempts="3")
Orchestrator(generator=generate, evaluator=lambda submission: {})
Orchestrator(generator=lambda request: "text", evaluator=evaluate)
Orchestrator(generator=lambda request: "text", evaluator=lambda submission: {}).run("a spec")
Candidate(text="one", files={"two": 2})
"""


def test_the_public_names_are_pinned() -> None:
    """Nothing becomes public, or stops being so, without this list being changed."""
    assert orchestrator.__all__ == sorted(NAMES.split())


def test_every_public_name_is_there() -> None:
    """What is announced can be imported."""
    assert [name for name in orchestrator.__all__ if not hasattr(orchestrator, name)] == []


def test_every_public_name_is_documented() -> None:
    """Whatever a host may use says what it promises."""
    assert [name for name in orchestrator.__all__ if not getattr(orchestrator, name).__doc__] == []


def test_lawful_use_type_checks(tmp_path: Path) -> None:
    """Every way of embedding that the types promise passes `mypy --strict`."""
    assert faults_of(CHECKOUT / "tests" / "typed_use.py", tmp_path) == []


def test_wrong_use_is_found_by_a_type_checker(tmp_path: Path) -> None:
    """A generator, evaluator, budget, spec or candidate of the wrong type shows before anything runs."""
    misuse = tmp_path / "misuse.py"
    misuse.write_text(WRONG_USE, encoding="utf-8")
    assert faults_of(misuse, tmp_path) == [
        (10, "arg-type"),
        (11, "arg-type"),
        (12, "arg-type"),
        (13, "arg-type"),
        (14, "dict-item"),
    ]


def faults_of(file: Path, folder: Path) -> list[tuple[int, str]]:
    """Line and code of everything that a strict type checker finds in a file."""
    said = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--cache-dir",
            folder / "cache",
            file,
        ],
        cwd=CHECKOUT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert said.stderr == ""
    lines = said.stdout.splitlines()
    errors = [line for line in lines if Path(line.partition(":")[0]).name == file.name and ": error: " in line]
    return [(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in errors]

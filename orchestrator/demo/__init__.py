"""A demonstration that needs no model: a small spec, its pytest suite, and a script of four answers.

Suite and answers lie here as `.py.txt`, so that no tool takes them for code of this package.
"""

from __future__ import annotations

import asyncio
from importlib.resources import files
from typing import Final

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.configuration import PYTEST
from orchestrator.documents import parse_document
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.ports import Generation, Request
from orchestrator.spec import MergedSpec
from orchestrator.spec.loading import read_spec

__all__ = ["CANDIDATE_FILE", "DemoGenerator", "demo_evaluator", "demo_spec"]

CANDIDATE_FILE: Final = "durations.py"

SUITE_FILE: Final = "test_durations.py"

SCRIPT: Final = ("1.py", "2.py", "2.py", "3.py")
"""The answers, attempt by attempt: a first try, a better one, the same again, and one that conforms."""


@attrs.define(eq=False)
class DemoGenerator:
    """Answers from its script, whatever it is asked, each after `pace` seconds; it opens no network."""

    pace: float = 0
    name: str = attrs.field(default="demo-script", init=False)
    isolation: str = attrs.field(default="none", init=False)
    max_prompt_characters: int | None = attrs.field(default=None, init=False)

    async def generate(self, request: Request) -> Generation:
        """The next answer of the script; GeneratorUnavailableError when there are no more."""
        if request.attempt > len(SCRIPT):
            raise GeneratorUnavailableError(f"the script has {len(SCRIPT)} answers")
        await asyncio.sleep(self.pace)
        return Generation(candidate=Candidate(text_of("candidates", f"{SCRIPT[request.attempt - 1]}.txt")))


def demo_spec() -> MergedSpec:
    """The spec: a parser of durations such as `1h 30m`."""
    return read_spec(parse_document(text_of("spec.toml"), ".toml", "the demo's spec"), "the demo's spec")


def demo_evaluator() -> CommandEvaluator:
    """The spec's suite, run by pytest."""
    suite = {SUITE_FILE: text_of("suite", f"{SUITE_FILE}.txt")}
    return CommandEvaluator(PYTEST, suite=suite, candidate_file=CANDIDATE_FILE, name="pytest")


def text_of(*path: str) -> str:
    """A file of this package."""
    return files(__name__).joinpath(*path).read_text(encoding="utf-8")

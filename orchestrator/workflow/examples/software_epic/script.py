"""The generator of the epic: a script that plans, writes and reviews, offline and the same every time."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Final

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation, Request

__all__ = ["EpicScript"]

STORY: Final = re.compile(r'"current_story":\s*"(\w+)"|"story":\s*"(\w+)"|One module, `(\w+)\.py`')
NO_DOCSTRING: Final = "Every module and every function has a docstring."


@attrs.define(eq=False)
class EpicScript:
    """Answers what the epic's phases ask: a plan, a module, or a review of one; it opens no network."""

    name: str = attrs.field(default="epic-script", init=False)
    isolation: str = attrs.field(default="none", init=False)
    max_prompt_characters: int | None = attrs.field(default=None, init=False)

    async def generate(self, request: Request) -> Generation:
        """The answer; GeneratorUnavailableError for anything else than the epic's stories."""
        found = STORY.search(request.prompt)
        story = next(filter(None, found.groups()), "") if found else ""
        if "# Plan the story" in request.prompt:
            return Generation(candidate=Candidate(plan(story)))
        if "REVIEWER" in request.prompt:
            return Generation(candidate=Candidate(reviewed(request.prompt)))
        return Generation(candidate=Candidate(module(story, request)))


def plan(story: str) -> str:
    """The outcome of the planning phase."""
    chunks = [f"Write {story}.py as its interface says.", "Handle what its threat model and constraints name."]
    updates = {"plan": chunks}
    told = f"{story} is done in {len(chunks)} chunks."
    return json.dumps({"next_phase": "03-implement", "state_updates": updates, "output": told})


def module(story: str, request: Request) -> str:
    """The module of a story: a first try, and a better one after a failure or a review."""
    number = min(request.attempt + request.prompt.count(NO_DOCSTRING), 2)
    answer = files(__package__ or "").joinpath("answers", f"{story}.{number}.py.txt")
    if not answer.is_file():
        raise GeneratorUnavailableError(f"the script knows no story {story!r}: configure a generator for your epic")
    return answer.read_text(encoding="utf-8")


def reviewed(prompt: str) -> str:
    """A review that asks for docstrings where there are none."""
    if '\\"\\"\\"' in prompt:
        return json.dumps({"status": "success", "summary": "Nothing to fix.", "approved": True, "issues": []})
    issue = {"severity": "must_fix", "description": NO_DOCSTRING}
    return json.dumps({"status": "success", "summary": "Not documented.", "approved": False, "issues": [issue]})

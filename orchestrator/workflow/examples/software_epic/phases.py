"""The epic's phases: what each does with the state, and which one it says comes next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.jsondata import JSON
from orchestrator.outcome import Passed
from orchestrator.ports import Generator
from orchestrator.workflow.components.bundle import Components
from orchestrator.workflow.components.retry import FailedAttempt, OperationError, RetryOutcome
from orchestrator.workflow.examples.software_epic.conforming import conformed, keep_module, tested
from orchestrator.workflow.examples.software_epic.epics import Epic, load_epic
from orchestrator.workflow.phases import PhaseOutcome
from orchestrator_events.verdict import CaseStatus

__all__ = ["begin_epic", "begin_story", "complete", "implement", "review", "test"]

State = Mapping[str, Any]

MOST_ROUNDS: Final = 2
"""How often a story is implemented at most: once, and once more after a review."""


def begin_epic(state: State, _: Components) -> PhaseOutcome:
    """00-init: read the epic and queue its stories; the workflow gets its id."""
    parameters = state["parameters"]
    epic = load_epic(parameters["epic"])
    updates: dict[str, JSON] = {
        "workflow_id": parameters["id"] or epic.id,
        "title": epic.title,
        "epic": parameters["epic"] and str(Path(parameters["epic"]).absolute()),
        "workspace": str(Path(parameters["workspace"]).absolute()),
        "story_queue": list(epic.stories),
        "current_story": None,
        "stories": [],
    }
    return PhaseOutcome("01-story", updates, f"{epic.title}: {len(epic.stories)} stories, {', '.join(epic.stories)}")


def begin_story(state: State, _: Components) -> PhaseOutcome:
    """01-story: take the next story; a queue that is empty ends the epic."""
    if not state["story_queue"]:
        return PhaseOutcome("06-complete", {"current_story": None}, "No story is left.")
    story, *rest = state["story_queue"]
    updates: dict[str, JSON] = {
        "current_story": story,
        "story_queue": rest,
        "outcome": "open",
        "plan": [],
        "review_notes": [],
        "review_round": 1,
    }
    return PhaseOutcome("02-plan", updates, f"Story {story}; {len(rest)} to come.")


async def implement(state: State, components: Components) -> PhaseOutcome:
    """03-implement: a conformance run writes the module, until the story's suite passes or the attempts are used up."""
    story, workspace = state["current_story"], Path(state["workspace"])
    report = await conformed(
        components,
        epic_of(state),
        story,
        state["review_notes"],
        part=f"{story}.{state['review_round']}",
        generator=generator_of(components),
    )
    if not isinstance(report, Passed):
        return PhaseOutcome("06-complete", {"outcome": "failed"}, f"{story}: no module conforms, {report.state}.")
    keep_module(workspace, story, report.candidate)
    attempts = f"{report.attempts} attempt{'s' if report.attempts > 1 else ''}"
    return PhaseOutcome("04-test", {}, f"{story}.py conforms after {attempts}.")


async def test(state: State, components: Components) -> PhaseOutcome:
    """04-test: the suites of all stories so far, on all modules; what one story breaks in another shows here."""
    epic, story, workspace = epic_of(state), state["current_story"], Path(state["workspace"])
    done = [each["story"] for each in state["stories"] if each["outcome"] == "completed"]

    async def attempt() -> int:
        verdict = await tested(epic, (*done, story), workspace)
        failed = [result.id for result in verdict.results if result.status is not CaseStatus.PASSED]
        if failed:
            raise OperationError(f"{len(failed)} of {len(verdict.results)} cases fail: {', '.join(failed)}")
        return len(verdict.results)

    async def fix(failure: FailedAttempt) -> str:
        part = f"{story}.{state['review_round']}.{failure.attempt}"
        report = await conformed(
            components, epic, story, [failure.error], part=part, generator=generator_of(components)
        )
        if not isinstance(report, Passed):
            return "no other module conforms"
        keep_module(workspace, story, report.candidate)
        return f"{story}.py was written again"

    outcome: RetryOutcome[int] = await components.retry.run("test", attempt, fix=fix)
    if not outcome.is_success:
        return PhaseOutcome("06-complete", {"outcome": "failed"}, f"{story}: {outcome.final_error}")
    return PhaseOutcome("05-review", {}, f"All {outcome.result} cases pass.")


async def review(state: State, components: Components) -> PhaseOutcome:
    """05-review: approved only with nothing that must be fixed; otherwise back to the implementing phase, once."""
    story, number = state["current_story"], state["review_round"]
    code = (Path(state["workspace"]) / "source" / f"{story}.py").read_text(encoding="utf-8")
    spawned = await components.subagents.spawn("REVIEWER", {"story": story, "code": code})
    if spawned.status != "success":
        raise OperationError(f"the reviewer gave no review: {spawned.status}, {spawned.error}")
    notes = [issue["description"] for issue in spawned.output["issues"] if issue["severity"] == "must_fix"]
    if not notes and spawned.output["approved"]:
        return PhaseOutcome("06-complete", {"outcome": "completed"}, f"{story} is approved.")
    if number >= MOST_ROUNDS:
        return PhaseOutcome("06-complete", {"outcome": "failed"}, f"{story} is not approved after {number} rounds.")
    updates: dict[str, JSON] = {"review_notes": notes, "review_round": number + 1}
    return PhaseOutcome("03-implement", updates, f"{story} must be fixed: {' '.join(notes)}")


async def complete(state: State, components: Components) -> PhaseOutcome:
    """06-complete: the story is put among those that are done; the next one follows, or the end."""
    stories = list(state["stories"])
    story = state["current_story"]
    if story is not None:
        stories.append({"story": story, "outcome": state["outcome"]})
        await components.metrics.count("stories_done" if state["outcome"] == "completed" else "stories_failed")
    following = "01-story" if state["story_queue"] else "done"
    told = f"{story}: {state['outcome']}." if story else ""
    if following == "done":
        completed = sum(each["outcome"] == "completed" for each in stories)
        told = f"{told} {completed} of {len(stories)} stories are completed.".strip()
    return PhaseOutcome(following, {"stories": stories, "current_story": None}, told)


def epic_of(state: State) -> Epic:
    """The epic that the state names."""
    return load_epic(state["epic"])


def generator_of(components: Components) -> Generator:
    """The workflow's generator, which writes the modules as well."""
    for generator in components.generators.values():
        return generator
    raise GeneratorUnavailableError("the workflow has no generator: name one with --generator or --config")

"""The commands `workflow run`, `resume` and `decide`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.failures import requirement_named, say
from orchestrator.cli.overrides import Limits, Overrides, budget_section, configured
from orchestrator.cli.running import requirement
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.workflows.asking import asked_at_terminal, can_ask
from orchestrator.cli.workflows.assembling import made_workflow
from orchestrator.cli.workflows.attending import Attendant
from orchestrator.cli.workflows.collecting import read_learnings
from orchestrator.cli.workflows.parameters import parameters_of
from orchestrator.cli.workflows.places import FoundDomain, find_domain, find_workflow, keep_domain, kept_domain
from orchestrator.cli.workflows.waiting import more_of_the_limit, waiting_lines
from orchestrator.configuration import Configuration, load_configuration, settled
from orchestrator.documents import read_text
from orchestrator.engine import new_run_id
from orchestrator.history import load_execution
from orchestrator.jsondata import JSON
from orchestrator.workflow.deciding import decision_of
from orchestrator.workflow.decisions import GO_ON, About
from orchestrator.workflow.domainfiles import phase_warnings
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statetext import read_given_state
from orchestrator_events.journal import Journal

__all__ = ["resume_workflow", "run_workflow"]


def run_workflow(
    name: str,
    given: Sequence[str],
    config: Path | None,
    over: Overrides,
    *,
    runs: Path,
    state_directory: Path | None,
    manner: Manner,
    learnings: Path | None = None,
) -> ExitCode:
    """Run a new workflow of a domain with the parameters given, and the learning records of other workflows."""
    found = find_domain(name, runs, state_directory)
    parameters = parameters_of(given, found.domain)
    configuration = configured(config, over)
    store = read_learnings(learnings)
    made_workflow(found, configuration)  # what is wrong shows before a journal is made
    place = RunPlace.at(runs, configuration.journal)
    begun = keeper(place, found, configuration)
    with closing(place.journal_to_write()) as journal:
        workflow = made_workflow(found, configuration, journal, store)
        with requirement_named(requirement(over.require_isolation, config)):
            run_blocking(workflow.isolation())  # what is refused leaves nothing behind
        run_id = new_run_id()
        begun(run_id)
        warn(found)
        attendant = Attendant(workflow=workflow, place=place, manner=manner, begun=begun, run_id=run_id)
        return attendant.attend(lambda: workflow.arun(parameters, run_id=run_id))


def resume_workflow(
    name: str,
    config: Path | None,
    over: Overrides,
    *,
    runs: Path,
    manner: Manner,
    choice: str = "",
    state: Path | None = None,
    learnings: Path | None = None,
) -> ExitCode:
    """Go on with a workflow, with what was decided; one that waits asks whoever is at the terminal.

    What is required of isolation and the limits are taken from `over`, all else from the configuration.
    """
    place, store = RunPlace.at(runs), read_learnings(learnings)
    with closing(place.journal_to_read()) as reading:
        run_id = find_workflow(reading, name)
        choice = chosen_before(reading, run_id, over.limits, choice, config)
    found = kept_domain(place, run_id)
    configuration = place.kept_configuration(run_id) if config is None else load_configuration(config)
    configuration = attrs.evolve(
        configuration,
        budget=budget_section(configuration.budget, over.limits),
        require_isolation=over.require_isolation or configuration.require_isolation,
    )
    provided: dict[str, JSON] | None = None if state is None else read_given_state(read_text(state), str(state))
    place = RunPlace.at(runs, configuration.journal)
    begun = keeper(place, found, configuration)
    with closing(place.journal_to_write()) as journal:
        workflow = made_workflow(found, configuration, journal, store)
        warn(found)
        attendant = Attendant(workflow=workflow, place=place, manner=manner, begun=begun, run_id=run_id)
        with requirement_named(requirement(over.require_isolation, config)):
            return attendant.attend(lambda: workflow.aresume(run_id, choice=choice or None, state=provided))


def warn(found: FoundDomain) -> None:
    """Say what is doubtful about the phase files of a domain."""
    for warning in phase_warnings(found.domain):
        say(f"warning: {warning}")


def keeper(place: RunPlace, found: FoundDomain, configuration: Configuration) -> Callable[[str], None]:
    """Keeps beside a run what it takes to go on with it."""

    def keep(run_id: str) -> None:
        keep_domain(place, run_id, found)
        place.keep_configuration(run_id, settled(configuration, Path.cwd(), configuration.generator.name, ""))

    return keep


def chosen_before(journal: Journal, run_id: str, limits: Limits, given: str, config: Path | None) -> str:
    """What is chosen before a workflow goes on that waits; empty where it does not wait, or nobody chooses.

    New limits are a choice by themselves where a limit is what it waits at, and without any it cannot go on there:
    RequestError. Otherwise whoever is at the terminal is asked, unless a choice is given.
    """
    run = run_blocking(load_execution(journal, run_id))
    decision = decision_of(run) if isinstance(run, WorkflowRun) else None
    if decision is None:
        return given
    has_more = limits != Limits() or config is not None
    if decision.about == About.BUDGET and given == GO_ON and not has_more:
        raise RequestError(f"{decision.message}: give it more, {more_of_the_limit(run.records)}")
    if given:
        return given
    if decision.about == About.BUDGET and limits != Limits():
        return GO_ON
    if not can_ask():
        return ""
    say("\n".join(waiting_lines(decision.message, run.records)))
    return asked_at_terminal(decision)

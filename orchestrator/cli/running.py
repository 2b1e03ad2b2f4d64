"""The commands `run` and `demo`."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.assembly import assemble, require
from orchestrator.blocking import run_blocking
from orchestrator.cli.conducting import Conductor, Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.failures import requirement_named
from orchestrator.cli.inert import inert
from orchestrator.cli.overrides import Limits, Overrides, budget_section, configured
from orchestrator.cli.runplace import RunPlace, refuse_unwritable
from orchestrator.cli.wording import limits
from orchestrator.configuration import load_configuration
from orchestrator.demo import CANDIDATE_FILE, DemoGenerator, demo_evaluator, demo_spec
from orchestrator.engine import Orchestrator
from orchestrator.history import lifecycle_of
from orchestrator.spec import MergedSpec, load_spec
from orchestrator_events.ledger import estimate_tokens

__all__ = ["requirement", "resume_run", "run_demo", "run_spec"]

DEMO_PACE_S: Final = 0.8
"""Time that an answer of the demo takes where somebody watches, seconds."""


def run_spec(
    spec_path: Path, config: Path | None, over: Overrides, *, runs: Path, manner: Manner, is_dry: bool
) -> ExitCode:
    """Run one spec, or with `is_dry` show what would be asked first, without calling anything."""
    spec = load_spec(spec_path)
    configuration = configured(config, over)
    if is_dry:
        show_first_prompt(assemble(configuration), spec, as_json=manner.as_json)
        return ExitCode.CONFORMS
    assemble(configuration)  # what is wrong shows before a journal is made
    place = RunPlace.at(runs, configuration.journal, configuration.evaluator.candidate_file)
    with closing(place.journal_to_write()) as journal:
        orchestrator = assemble(configuration, journal=journal)
        conductor = Conductor(orchestrator=orchestrator, place=place, manner=manner, configuration=configuration)
        with requirement_named(requirement(over.require_isolation, config)):
            return conductor.conduct(spec)


def resume_run(
    run_name: str,
    config: Path | None,
    limits: Limits,
    *,
    runs: Path,
    manner: Manner,
    require_isolation: Literal["none", "basic", "strong"] | None = None,
) -> ExitCode:
    """Go on with a run under the configuration it was started with, or the one named, limits changed as given."""
    place = RunPlace.at(runs)
    refuse_unwritable(place.root)  # before it is read: a journal on a disk without writing may not even be opened
    with closing(place.journal_to_read()) as journal:
        run_id = place.found(journal, run_name)
        refuse_other_lifecycle(place, run_id, run_blocking(lifecycle_of(journal, run_id)))
    configuration = place.kept_configuration(run_id) if config is None else load_configuration(config)
    configuration = attrs.evolve(
        configuration,
        budget=budget_section(configuration.budget, limits),
        require_isolation=require_isolation or configuration.require_isolation,
    )
    place = RunPlace.at(runs, configuration.journal, configuration.evaluator.candidate_file)
    with closing(place.journal_to_write()) as journal:
        orchestrator = assemble(configuration, journal=journal)
        with requirement_named(requirement(require_isolation, config)):
            return Conductor(orchestrator=orchestrator, place=place, manner=manner).resume(run_id)


def refuse_other_lifecycle(place: RunPlace, run_id: str, lifecycle: str) -> None:
    """Raise RequestError, naming what goes on with it, for a run that is no conformance run."""
    match lifecycle:
        case "run":
            return
        case "workflow":
            remedy = f"it is a workflow: {place.command('workflow resume', run_id)}"
        case "plan":
            remedy = "it is a plan: `orchestrator plan resume` with the plan's file"
        case "agent":
            remedy = "it is an agent run: the program that started it goes on with it"
        case other:
            remedy = f"it is of the lifecycle {other!r}: what it is inside of goes on with it"
    raise RequestError(f"run {run_id} is no conformance run; {remedy}")


def requirement(option: str | None, config: Path | None) -> str:
    """What required an isolation, as the user wrote it: the option, or the key in the file."""
    if option is not None:
        return "--require-isolation"
    return f"require-isolation in {'its configuration' if config is None else config}"


def run_demo(*, runs: Path, manner: Manner, pace: float | None) -> ExitCode:
    """Run the demonstration: it needs pytest, no model and no network."""
    require("pytest", "the demo's eval suite is run with pytest")
    require("junitparser", "a JUnit report is read with junitparser")
    place = RunPlace.at(runs, candidate_file=CANDIDATE_FILE)
    default_pace = DEMO_PACE_S if manner.draws_live else 0
    with closing(place.journal_to_write()) as journal:
        orchestrator = Orchestrator(
            generator=DemoGenerator(default_pace if pace is None else pace),
            evaluator=demo_evaluator(),
            journal=journal,
        )
        return Conductor(orchestrator=orchestrator, place=place, manner=manner).conduct(demo_spec())


def show_first_prompt(orchestrator: Orchestrator, spec: MergedSpec, *, as_json: bool) -> None:
    """The first prompt with everything that identifies it."""
    prompt = orchestrator.first_prompt(spec)
    digest = sha256(prompt.encode()).hexdigest()
    facts = {
        "spec": f"{spec.name} {spec.digest}",
        "cases": str(len(spec.evals)) if spec.evals else "as reported",
        "generator": orchestrator.driver.generator.name,
        "evaluator": orchestrator.driver.evaluator.name,
        "strategy": orchestrator.strategy.name,
        "language": orchestrator.language,
        "limits": limits(orchestrator.budget),
        "prompt": f"sha256:{digest}, {len(prompt)} characters, about {estimate_tokens(prompt)} tokens",
    }
    if as_json:
        budget = attrs.asdict(orchestrator.budget)
        whole = {**facts, "spec_digest": spec.digest, "prompt_digest": f"sha256:{digest}", "budget": budget}
        sys.stdout.write(json.dumps({**whole, "prompt": prompt}, indent=2) + "\n")
        return
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {inert(value)}\n" for name, value in facts.items()]
    sys.stdout.write("".join(lines) + "\n" + (inert(prompt) if sys.stdout.isatty() else prompt))

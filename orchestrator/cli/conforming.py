"""The command `conform`: one run per configured generator, and the lockfile of their outcomes."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Self

import attrs

from orchestrator.assembly import assemble
from orchestrator.blocking import run_blocking
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.failures import requirement_named, say
from orchestrator.cli.inert import inert
from orchestrator.cli.interruption import run_until_signalled
from orchestrator.cli.isolationlines import trust_lines, unheld_line
from orchestrator.cli.progress import Progress
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of
from orchestrator.configuration import Configuration, load_configuration
from orchestrator.conform import Lockfile, aconform, write_lockfile
from orchestrator.engine import Orchestrator, new_run_id
from orchestrator.history import load_run, report_of
from orchestrator.run import Run
from orchestrator.spec import MergedSpec, load_spec
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.journal import Journal
from orchestrator_states.run import RUN

__all__ = ["conform_spec"]


def conform_spec(spec_path: Path, configs: list[Path], lockfile: Path, *, runs: Path, manner: Manner) -> ExitCode:
    """Run a spec once per configuration and write the lockfile; conforms when every generator does."""
    spec = load_spec(spec_path)
    configurations = [load_configuration(path) for path in configs]
    names = [assemble(each).driver.generator.name for each in configurations]  # faults show before a journal is made
    if len(set(names)) != len(names):
        raise RequestError(f"two configurations name one generator: {', '.join(names)}: give each its own `name`")
    place = RunPlace.at(runs, configurations[0].journal)
    with closing(place.journal_to_write()) as journal, requirement_named("require-isolation in its configuration"):
        found = run_all(configurations, spec, journal, manner)
    write_lockfile(found, lockfile)
    tell(found, lockfile, manner)
    return ExitCode.CONFORMS if found.is_conforming else ExitCode.EXHAUSTED


def run_all(configurations: list[Configuration], spec: MergedSpec, journal: Journal, manner: Manner) -> Lockfile:
    """One run after another, each with its progress."""

    def told(number: signal.Signals) -> None:
        say(f"{number.name}: ending the run in order; a second signal ends it at once")

    with ExitStack() as watched:
        made = [watched.enter_context(Watched.of(each, spec, journal, manner)).orchestrator for each in configurations]
        found = run_until_signalled(aconform(made, spec), told, lambda: None)
    for orchestrator, ended in zip(made, found.generators, strict=True):
        with suppress(OrchestratorError):  # a run that could not be recorded has no verdict to tell of
            for line in trust_lines(report_of(run_blocking(load_run(journal, ended.run)))):
                say(f"{ended.generator}: {line}")
        if unheld := unheld_line(orchestrator.known_isolation):
            say(f"{orchestrator.driver.generator.name}: {unheld}")
    return found


@attrs.frozen(eq=False)
class Watched:
    """An orchestrator for one run, and the subscription that shows its progress."""

    orchestrator: Orchestrator
    closers: ExitStack

    @classmethod
    def of(cls, configuration: Configuration, spec: MergedSpec, journal: Journal, manner: Manner) -> Watched:
        """Assemble it with the id of its one run settled."""
        run_id = new_run_id()
        orchestrator = attrs.evolve(assemble(configuration, journal=journal), new_id=lambda: run_id)
        screen = manner.screen()
        mirror = Run.blank(run_id, RUN, orchestrator.budget, orchestrator.clock, journal, spec=spec)
        closers = ExitStack()
        closers.callback(screen.close)
        closers.enter_context(orchestrator.bus.subscribe(Progress(mirror, screen), run_id=run_id, name="progress"))
        return cls(orchestrator, closers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.closers.close()


def tell(found: Lockfile, path: Path, manner: Manner) -> None:
    """A line a generator on standard output, or the lockfile itself as JSON."""
    if manner.as_json:
        sys.stdout.write(json.dumps({**attrs.asdict(found), "is_conforming": found.is_conforming}, indent=2) + "\n")
        return
    width = max(len(each.generator) for each in found.generators)
    for each in found.generators:
        after = f"{count_of(each.attempts, 'attempt'):<11}"
        shown = f"{each.generator:<{width}}  {each.outcome:<11}  {after}  run {each.run}  {each.detail}"
        sys.stdout.write(f"{inert(shown).rstrip()}\n")
    passed = sum(each.outcome == "passed" for each in found.generators)
    sys.stdout.write(f"{passed} of {len(found.generators)} generators conform  {path}\n")

"""The command `workflow check`: every transition that a domain allows, taken with scripted phases."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.cli.exitcodes import ExitCode
from orchestrator.cli.inert import inert
from orchestrator.cli.streams import printing_aside
from orchestrator.cli.wording import count_of
from orchestrator.cli.workflows.places import FoundDomain, find_domain, modules_found_beside
from orchestrator.cli.workflows.walks import walks_over
from orchestrator.workflow.components.bundle import Components
from orchestrator.workflow.decisions import Policy
from orchestrator.workflow.domain import DONE, Domain
from orchestrator.workflow.domainfiles import phase_warnings
from orchestrator.workflow.engine import Workflow
from orchestrator.workflow.executors import lacking
from orchestrator.workflow.phases import PhaseOutcome
from orchestrator_events.budget import Budget
from orchestrator_events.workflow import PhaseEntered

__all__ = ["check_domain"]

Walk = tuple[str, ...]


@attrs.frozen(kw_only=True)
class Checked:
    """What the check of a domain found."""

    domain: str
    phases: tuple[str, ...]
    transitions: int
    walks: tuple[Walk, ...]
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


def check_domain(name: str, *, as_json: bool) -> ExitCode:
    """Load a domain, look for what its phases need, and take every transition; USAGE when anything is wrong."""
    found = find_domain(name, Path("runs"))
    with printing_aside():  # the modules of the domain are imported
        checked = checked_domain(found)
    if as_json:
        sys.stdout.write(json.dumps(attrs.asdict(checked), indent=2) + "\n")
    else:
        sys.stdout.write("".join(f"{inert(line)}\n" for line in lines_of(checked)))
    return ExitCode.USAGE if checked.faults else ExitCode.CONFORMS


def checked_domain(found: FoundDomain) -> Checked:
    """What is wrong with a domain that could be loaded, and the walks through it."""
    domain = found.domain
    edges = {phase: domain.choices_after(phase) for phase in domain.ids}
    walks = tuple(walks_over(edges, domain.first, DONE))
    return Checked(
        domain=domain.name,
        phases=domain.ids,
        transitions=sum(map(len, edges.values())),
        walks=walks,
        faults=(*executor_faults(found), *walk_faults(domain, walks)),
        warnings=phase_warnings(domain),
    )


def lines_of(checked: Checked) -> Iterator[str]:
    """The result for people."""
    for walk in checked.walks:
        yield " > ".join(walk)
    yield from (f"warning: {warning}" for warning in checked.warnings)
    yield from (f"fault: {fault}" for fault in checked.faults)
    counted = f"{count_of(len(checked.phases), 'phase')}, {count_of(checked.transitions, 'transition')}"
    if checked.faults:
        yield f"{checked.domain}: {counted}, {count_of(len(checked.faults), 'fault')}"
    else:
        yield f"{checked.domain}: {counted}, all taken in {count_of(len(checked.walks), 'walk')}"


def executor_faults(found: FoundDomain) -> Iterator[str]:
    """Phases that nothing could execute: no file where one is due, or a callable that cannot be loaded."""
    modules_found_beside(found.path)
    for fault in lacking(found.domain.phases, found.domain.phase_directory):
        yield str(fault) if fault.path.endswith(".callable") else fault.message


def walk_faults(domain: Domain, walks: tuple[Walk, ...]) -> Iterator[str]:
    """Walks that the engine does not take as they were scripted."""
    for walk in walks:
        with tempfile.TemporaryDirectory(prefix="orchestrator-check-") as directory:
            taken, told = run_blocking(walked(domain, walk, Path(directory)))
        if taken != walk:
            yield f"{' > '.join(walk)}: went {' > '.join(taken) or 'nowhere'}: {told}"


async def walked(domain: Domain, walk: Walk, state_directory: Path) -> tuple[Walk, str]:
    """The phases that the engine enters when each execution says what the walk has next, and what it told last."""
    following = iter(walk[1:])

    async def scripted(_: Mapping[str, Any], __: Components) -> PhaseOutcome:
        return PhaseOutcome(next(following), {}, "scripted")

    workflow = Workflow(
        attrs.evolve(
            domain,
            state_directory=state_directory,
            parameters=None,
            policy=Policy(phase_error="abort", cascade="abort"),
        ),
        phases=dict.fromkeys(domain.ids[:-1], scripted),
        budget=Budget(attempts=len(walk), repeats=None),
    )
    result = await workflow.arun()
    entered = (record.event for record in result.records)
    taken = tuple(event.phase for event in entered if isinstance(event, PhaseEntered))
    return taken, result.lines[-1] if result.lines else result.status

"""Where workflows are found: the domain that DOMAIN names, the run that ID names, and what is kept of each run."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.cli.exitcodes import RequestError
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.streams import printing_aside
from orchestrator.documents import read_document
from orchestrator.faults import Fault, closest_name
from orchestrator.history import UnknownRunError, find_run
from orchestrator.structuring import structure
from orchestrator.workflow.domain import Domain, Phase
from orchestrator.workflow.domainfiles import Examine, read_domain
from orchestrator.workflow.examples import EXAMPLES
from orchestrator.workflow.executors import lacking
from orchestrator.workflow.resuming import find_workflow as find_named
from orchestrator_events.journal import Journal

__all__ = ["FoundDomain", "find_domain", "find_workflow", "keep_domain", "kept_domain", "modules_found_beside"]

NAMES: Final = ("domain.yaml", "domain.yml", "domain.toml", "domain.json", "domain.md", "orchestrator.md")
"""What a domain file may be called in the directory that is named."""
KEPT: Final = "workflow.json"


@attrs.frozen(kw_only=True)
class FoundDomain:
    """A domain, and the file that defines it."""

    domain: Domain
    path: Path
    example: str = ""
    """Name of the example that it is; empty for a domain of somebody's own."""


@attrs.frozen(kw_only=True)
class KeptDomain:
    """`workflow.json` beside a run: what it takes to go on with it."""

    domain: str
    """Name of an example, or the domain file."""
    state_directory: str


def find_domain(text: str, runs: Path, state_directory: Path | None = None, *, is_executed: bool = True) -> FoundDomain:
    """The domain of an example, of a file, or of the directory that the file lies in.

    The state lies where the domain says, or in `state_directory`; that of an example below the runs. Raises
    RequestError where there is none, DomainError with every fault of one: where it is to be executed, also with what
    its phases lack.
    """
    example = text if text in EXAMPLES else ""
    path = (EXAMPLES[text] if example else file_of(text)).absolute()
    domain = read_domain(path, lacking_beside(path) if is_executed else None)
    where = state_directory or (runs / "state" if example else None)
    if where is not None:
        domain = attrs.evolve(domain, state_directory=where.absolute())
    return FoundDomain(domain=domain, path=path, example=example)


def lacking_beside(path: Path) -> Examine:
    """What looks for the callables of phases beside their domain file."""

    def examine(phases: Sequence[Phase], directory: Path | None) -> Iterable[Fault]:
        modules_found_beside(path)
        with printing_aside():
            return tuple(lacking(phases, directory))

    return examine


def modules_found_beside(path: Path) -> None:
    """Have the modules that a domain names looked for beside its file first, as those of a script are."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))


def file_of(text: str) -> Path:
    """The domain file that a path names."""
    path = Path(text)
    if path.is_dir():
        found = [name for name in NAMES if (path / name).is_file()]
        if not found:
            raise RequestError(f"{path} holds no domain: name the file, or call it {NAMES[0]} or {NAMES[-1]}")
        if len(found) > 1:
            raise RequestError(f"{path} holds {' and '.join(found)}: name the one that is meant")
        return path / found[0]
    if not path.exists():
        near = closest_name(text, EXAMPLES)
        remedy = f"did you mean {near!r}?" if near else f"name its file, or an example: {', '.join(EXAMPLES)}"
        raise RequestError(f"no domain {text!r}: {remedy}")
    return path


def find_workflow(journal: Journal, text: str) -> str:
    """The run that a workflow's id, a run's id, its beginning or `last` names; RequestError for none."""
    try:
        return run_blocking(find_named(journal, text))
    except UnknownRunError:
        pass
    try:
        return run_blocking(find_run(journal, text))
    except UnknownRunError as error:
        raise RequestError(f"no workflow {text!r}, by its own id or its run's: {error}") from None


def keep_domain(place: RunPlace, run_id: str, found: FoundDomain) -> None:
    """Write beside a run which domain it is of."""
    directory = place.directory(run_id)
    directory.mkdir(parents=True, exist_ok=True)
    kept = KeptDomain(domain=found.example or str(found.path), state_directory=str(found.domain.state_directory))
    (directory / KEPT).write_text(json.dumps(attrs.asdict(kept), indent=2) + "\n", encoding="utf-8")


def kept_domain(place: RunPlace, run_id: str) -> FoundDomain:
    """The domain of a run; RequestError when nothing is kept."""
    path = place.directory(run_id) / KEPT
    if not path.is_file():
        raise RequestError(f"no {path}: the workflow was started elsewhere; name the directory of its runs with --runs")
    kept = structure(read_document(path), KeptDomain, str(path))
    return find_domain(kept.domain, place.root, Path(kept.state_directory))

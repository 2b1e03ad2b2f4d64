"""Where things lie below a studio's root: the paths contract 5 gives, each of them configurable within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Final

from orchestrator.paths import path_key
from orchestrator.plan.vocabulary import ARTIFACT, is_artifact_name
from orchestrator_events.errors import OrchestratorError

__all__ = ["CONTRACTS", "STUDIO_PATHS", "StudioPathsError", "path_faults", "previous_path"]

CONTRACTS: Final = "CONTRACTS/"
"""What a plan calls contracts by, wherever the studio keeps them: what a plan means depends on no configuration."""
STUDIO_PATHS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "state": "STATE/state.json",
        "page": "STATE/STATE.md",
        "policy": "POLICIES/routing_policy.yaml",
        "decisions": "ADR",
        "contracts": "CONTRACTS",
        "runs": "RUNS",
        "reviews": "RUNS",
        "reports": "RUNS",
        "workspaces": "WORK",
    }
)
"""What can be put elsewhere, and where it is by default; contract 5 wants reviews and test reports with the runs."""
ENDINGS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"state": (".json",), "page": (".md",), "policy": (".yaml", ".yml", ".json", ".toml")}
)
"""Of the files among them, how their names end; the others are directories."""
BEFORE: Final = "the state before"
TOGETHER: Final = frozenset({"runs", "reviews", "reports"})
"""What may lie in one directory: the names of the files keep them apart."""


class StudioPathsError(OrchestratorError, ValueError):
    """Paths of a studio do not fit; `faults` has each with the key it is of, all of them at once."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        super().__init__("; ".join(f"{key} is {message}" for key, message in faults.items()))


def path_faults(paths: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The key of each path that cannot be, and why: out of the root, of another form, or in the way of another."""
    fit: dict[str, str] = {}
    for key, path in paths.items():
        endings = ENDINGS.get(key)
        if not is_artifact_name(path):
            yield key, f"{path!a:.120}, no path below the root: use {ARTIFACT}"
        elif endings and not path.lower().endswith(endings):
            yield key, f"{path!a:.120}, which is of no form it has: name it with {' or '.join(endings)}"
        else:
            fit[key] = path
    if "state" in fit:  # the one before is kept beside it
        fit[BEFORE] = previous_path(fit["state"])
    yield from collisions(fit)


def collisions(paths: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Paths that are the same as another, or lie below it; told once, of the one that was moved."""
    told: set[str] = set()
    for (first, its), (second, other) in combinations(paths.items(), 2):
        a, b = path_key(its), path_key(other)
        if a == b and {first, second} <= TOGETHER:
            continue
        is_first = STUDIO_PATHS[first] != its and STUDIO_PATHS.get(second, other) == other
        key, path, rest, there = (first, its, second, other) if is_first else (second, other, first, its)
        key = "state" if key == BEFORE else key
        if key in told or not (a == b or f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/")):
            continue
        told.add(key)
        where = f"where {rest} is" if a == b else f"which is above or below {rest} ({there!a:.120})"
        yield key, f"{path!a:.120}, {where}: give each its own"


def previous_path(state_path: str) -> str:
    """Where the state before is kept."""
    return state_path[: -len(".json")] + ".previous.json"

"""Which files subagents that run side by side may change, and did: no file belongs to two of them."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.adapter_errors import CandidateRefusedError
from orchestrator.paths import path_key, refuse_unsafe_paths
from orchestrator_events.errors import OrchestratorError

__all__ = ["FileConflictError", "FileOverlapError", "refuse_conflicts", "refuse_overlaps"]


class FileOverlapError(OrchestratorError, ValueError):
    """Two tasks would work on the same `path`; `tasks` are their numbers, from 1. Nothing was spent."""

    def __init__(self, path: str, tasks: tuple[int, int], fault: str) -> None:
        self.path = path
        self.tasks = tasks
        super().__init__(
            f"tasks {tasks[0]} and {tasks[1]} cannot run side by side: {fault}; do them one after the other"
        )


class FileConflictError(OrchestratorError):
    """Two subagents that ran side by side changed the same `path`: whose content is there, nobody knows.

    `tasks` are their numbers, from 1. It is fatal for the phase.
    """

    def __init__(self, path: str, tasks: tuple[int, int]) -> None:
        self.path = path
        self.tasks = tasks
        super().__init__(
            f"subagents {tasks[0]} and {tasks[1]} both changed {path!a:.200}: restore it, and do their tasks one "
            "after the other"
        )


def refuse_overlaps(declared: Sequence[Sequence[str]]) -> None:
    """Raise FileOverlapError where two tasks name a path, or one a directory of the other's.

    Paths that some file system takes for one are the same. ValueError for a path that cannot be written safely.
    """
    for index, paths in enumerate(declared):
        try:
            refuse_unsafe_paths(paths)
        except CandidateRefusedError as error:
            raise ValueError(f"task {index + 1}: {error.reason.replace('the candidate', 'the task', 1)}") from None
        for before in range(index):
            for path in paths:
                try:
                    refuse_unsafe_paths((path,), taken=declared[before])
                except CandidateRefusedError as error:
                    fault = error.reason.replace("the candidate's file", "file", 1)
                    raise FileOverlapError(path, (before + 1, index + 1), fault) from None


def refuse_conflicts(declared: Sequence[Sequence[str]], changed: Sequence[Sequence[str]]) -> None:
    """Raise FileConflictError where two outputs name a file, or one names a file that is another task's."""
    owners = {path_key(path): index for index, paths in enumerate(declared) for path in paths}
    for index, paths in enumerate(changed):
        for path in paths:
            owner = owners.setdefault(path_key(path), index)
            if owner != index:
                first, second = sorted((owner + 1, index + 1))
                raise FileConflictError(path, (first, second))

"""Where judge and candidate work: the suite in one directory, the candidate in another, neither in the other's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.workspace import copy_directory, digests, write_files

__all__ = ["Layout", "module_names"]


@attrs.frozen
class Layout:
    """The directories of one evaluation, below a fresh one."""

    root: Path

    @property
    def suite(self) -> Path:
        """Where the judge works."""
        return self.root / "suite"

    @property
    def candidate(self) -> Path:
        """Where the candidate works."""
        return self.root / "candidate"

    def temporary(self, side: Path) -> Path:
        """Where one of them may write."""
        return self.root / f"temporary-{side.name}"

    def lay_out(
        self, suite: Path | Mapping[str, str], candidate: Candidate, candidate_file: str, shared: Iterable[str]
    ) -> dict[str, bytes]:
        """Write everything; the digests of the suite's files.

        Raises CandidateRefusedError when the candidate's paths are unsafe or belong to the suite,
        EvaluationError when the suite cannot be written.
        """
        files = candidate.files or {candidate_file: candidate.text}
        if "" in files:
            raise EvaluationError("the candidate is one text: name its file with candidate_file")
        try:
            for side in (self.suite, self.candidate):
                self.temporary(side).mkdir()
            self._write_suite(suite)
            found = digests(self.suite)
            self.candidate.mkdir()
            self._share(shared)
            refuse_unsafe_paths(files, found)
            write_files(files, self.candidate)
        except OSError as error:
            raise EvaluationError(f"suite and candidate cannot be written: {error}") from error
        return found

    def _write_suite(self, suite: Path | Mapping[str, str]) -> None:
        if not isinstance(suite, Mapping):
            copy_directory(suite, self.suite)
            return
        self.suite.mkdir()
        try:
            write_files(suite, self.suite)
        except CandidateRefusedError as error:
            raise EvaluationError(f"the suite cannot be written: {error}") from error

    def _share(self, shared: Iterable[str]) -> None:
        for path in shared:
            target = self.candidate / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((self.suite / path).read_bytes())

    def refuse_changed(self, before: Mapping[str, bytes]) -> None:
        """Raise EvaluationError when a file of the suite is not what it was: the suite is what judges."""
        now = digests(self.suite)
        changed = sorted(path for path, digest in before.items() if now.get(path) != digest)
        if changed:
            raise EvaluationError(
                f"the suite's own files were changed while it ran: {', '.join(changed[:5])}; "
                "let it write elsewhere, or install a sandbox that keeps them (apt install bubblewrap)"
            )


def module_names(paths: Iterable[str]) -> tuple[str, ...]:
    """The top-level modules that files make, by name, each once."""
    tops = (PurePosixPath(path).parts[0] for path in paths if path.endswith(".py"))
    return tuple(dict.fromkeys(top.removesuffix(".py") for top in tops))

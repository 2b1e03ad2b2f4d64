"""Where runs are kept: one journal for all, and a directory for each with its candidate and its result."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from orchestrator.blocking import run_blocking
from orchestrator.candidate import Candidate
from orchestrator.cli.exitcodes import RequestError
from orchestrator.configuration import Configuration, configuration_json, load_configuration
from orchestrator.history import LAST, UnknownRunError, find_run
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.workspace import write_files
from orchestrator_events.journal import Journal

__all__ = ["JOURNAL", "RunPlace", "refuse_unwritable"]

RUNS: Final = "runs"
"""Where runs are kept unless another directory is named."""
JOURNAL: Final = "journal.sqlite"
CONFIGURATION: Final = "configuration.json"
TEXT_FILE: Final = "candidate.txt"
"""Name of a candidate that is one text, where nobody named its file."""
REMEDY: Final = "name a directory that can be written with --runs"


@attrs.frozen
class RunPlace:
    """A directory of runs; `journal_file` may lie elsewhere."""

    root: Path
    journal_file: Path
    candidate_file: str = ""

    @classmethod
    def at(cls, root: Path, journal_file: Path | None = None, candidate_file: str = "") -> RunPlace:
        """The usual place, with the journal in the directory unless it is named."""
        return cls(root, journal_file or root / JOURNAL, candidate_file)

    def journal_to_write(self) -> SqliteJournal:
        """The journal, created with its directory when there is none; RequestError where nothing can be written."""
        for directory in dict.fromkeys((self.root, self.journal_file.parent)):
            made_writable(directory)
        return SqliteJournal(self.journal_file)

    def journal_to_read(self) -> SqliteJournal:
        """The journal as it is; RequestError when there is none."""
        if not self.journal_file.is_file():
            raise RequestError(
                f"no journal at {self.journal_file}: run a spec first, or name the directory with --runs"
            )
        return SqliteJournal(self.journal_file, read_only=True)

    def found(self, journal: Journal, text: str) -> str:
        """The id of the run that `text` names, or of the workflow whose id it is.

        UnknownRunError names the journal and how to list its runs.
        """
        try:
            return workflow_called(journal, text) or run_blocking(find_run(journal, text))
        except UnknownRunError as error:
            listing = f"`{self.command('runs')}` lists those there are"
            place = str(self.journal_file)
            raise UnknownRunError(error.run_id, error.near, error.fitting, place=place, listing=listing) from None

    def directory(self, run_id: str) -> Path:
        """The directory of one run."""
        return self.root / run_id

    def show_command(self, run_id: str) -> str:
        """The command that shows a run of this place."""
        return self.command("show", run_id)

    def resume_command(self, run_id: str) -> str:
        """The command that goes on with a run of this place."""
        return self.command("resume", run_id)

    def command(self, name: str, run_id: str = "") -> str:
        """A command on a run of this place, or on all, as it is typed in the current directory."""
        words = f"orchestrator {name} {run_id}".rstrip()
        if self.journal_file == Path(RUNS) / JOURNAL:
            return words
        where = self.root if self.journal_file == self.root / JOURNAL else self.journal_file
        return f"{words} --runs {shlex.quote(str(where))}"

    def keep_configuration(self, run_id: str, configuration: Configuration) -> None:
        """Write what a run is configured with, for `kept_configuration`."""
        directory = self.directory(run_id)
        directory.mkdir(parents=True, exist_ok=True)
        text = json.dumps(configuration_json(configuration), indent=2) + "\n"
        (directory / CONFIGURATION).write_text(text, encoding="utf-8")

    def kept_configuration(self, run_id: str) -> Configuration:
        """What a run was configured with; RequestError when nothing is kept."""
        path = self.directory(run_id) / CONFIGURATION
        if not path.is_file():
            raise RequestError(f"no {path}: name the configuration of run {run_id} with --config")
        return load_configuration(path)

    def keep_candidate(self, run_id: str, candidate: Candidate, folder: str) -> Path:
        """Write a candidate, unaltered, below the run's directory; its file, or the folder of several.

        Raises CandidateRefusedError, having written nothing, when a path in it is unsafe.
        """
        directory = self.directory(run_id) / folder
        shutil.rmtree(directory, ignore_errors=True)  # an earlier invocation's
        directory.mkdir(parents=True)
        if candidate.files:
            write_files(candidate.files, directory)
            return directory
        name = self.candidate_file or TEXT_FILE
        write_files({name: candidate.text}, directory)
        return directory / name

    def keep_result(self, run_id: str, result: Mapping[str, Any]) -> Path:
        """Write the result as JSON."""
        directory = self.directory(run_id)
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "result.json"
        path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        return path


def made_writable(directory: Path) -> None:
    """Make a directory, unless it is there; RequestError where it cannot be made, or nothing can be written into it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "not a directory" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise RequestError(f"{error.filename or directory}: {reason}: {REMEDY}") from None
    refuse_unwritable(directory)


def refuse_unwritable(directory: Path) -> None:
    """Raise RequestError where nothing can be written into a directory that is there."""
    if directory.is_dir() and not os.access(directory, os.W_OK | os.X_OK):
        raise RequestError(f"{directory}: nothing can be written there: {REMEDY}")


def workflow_called(journal: Journal, text: str) -> str:
    """The run of the workflow with this id; empty where there is none, or a run itself is called so."""
    if text == LAST or text in run_blocking(journal.run_ids()):
        return ""
    from orchestrator.workflow.resuming import find_workflow

    try:
        return run_blocking(find_workflow(journal, text))
    except UnknownRunError:
        return ""

"""An eval suite run as a program: its report, case by case, is the verdict; its exit status never is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.commandline import name_of_command, shorter, split_command
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.evaluators.reports import LARGEST_REPORT, READERS
from orchestrator.evaluators.suite_run import SuiteRun
from orchestrator.paths import path_key
from orchestrator.ports import Submission, Verdict
from orchestrator.process import CONTAINMENT, Completed, Launcher, run_process
from orchestrator.workspace import (
    UnsafeFileError,
    copy_directory,
    fresh_directory,
    read_regular_file,
    write_files,
)
from orchestrator_events.verdict import CaseResult

__all__ = ["CommandEvaluator"]


@attrs.define(eq=False)
class CommandEvaluator:
    """Runs an eval suite on each candidate, in a fresh directory, and reads the report it leaves.

    In the command `{python}` is this interpreter, `{report}` the report file and `{candidate}` the
    candidate file; no shell ever runs, and a program with a relative path is looked for in the suite.
    Most suites share their process with the candidate, so a hostile one can forge its report; what it
    cannot do is pass without every expected case being reported.
    """

    command: tuple[str, ...] = attrs.field(converter=split_command)
    suite: Path | Mapping[str, str] = attrs.field(kw_only=True)
    """A directory to copy, or relative path to text; a candidate may overwrite none of it."""
    candidate_file: str = attrs.field(default="", kw_only=True)
    """Where a candidate that is one text is written."""
    report: Literal["junit", "ctrf", "json"] = attrs.field(default="junit", kw_only=True)
    report_file: str = attrs.field(default="report.xml", kw_only=True)
    name: str = attrs.field(default="", kw_only=True)
    """Identifies it in records and over a resume; by default the program and a digest of the command."""
    seconds: float | None = attrs.field(default=60, kw_only=True)
    """Time of one evaluation; the shorter of this and what the run has left holds."""
    output_limit: int = attrs.field(default=4_000_000, kw_only=True)
    """What the suite may write to each output stream, bytes; one that writes more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones; a trailing `*` stands for any ending."""
    extra_environment: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    launcher: Launcher = attrs.field(default=CONTAINMENT, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.report not in READERS:
            raise ValueError(f"{self.report!r} is no form of report: choose one of {', '.join(READERS)}")
        self.name = self.name or name_of_command(self.command)

    async def evaluate(self, submission: Submission) -> Verdict:
        """What the suite reported of the candidate.

        A suite that hangs, crashes or is flooded while it judges gives every expected case as timed out or
        error: never passed, and no reason to stop the run. Raises CandidateRefusedError when the candidate
        cannot be written beside the suite, EvaluationError when the suite itself gives no verdict.
        """
        seconds = shorter(self.seconds, submission.seconds)
        with fresh_directory() as directory:
            place = directory / "suite"
            (directory / "temporary").mkdir()
            self._lay_out(submission.candidate, place)
            suite_run = SuiteRun(
                completed=await self._run(place, seconds),
                seconds=seconds,
                expected=submission.spec.expected_cases,
                report_file=self.report_file,
            )
            return Verdict(self._results(place, suite_run), self.launcher.isolation)

    def _lay_out(self, candidate: Candidate, place: Path) -> None:
        files = candidate.files or {self.candidate_file: candidate.text}
        if "" in files:
            raise EvaluationError("the candidate is one text: name its file with candidate_file")
        if path_key(self.report_file) in map(path_key, files):
            raise CandidateRefusedError(f"the candidate holds {self.report_file}, which the suite writes")
        try:
            self._lay_out_suite(place)
            write_files(files, place)
        except OSError as error:
            raise EvaluationError(f"suite and candidate cannot be written: {error}") from error

    def _lay_out_suite(self, place: Path) -> None:
        if not isinstance(self.suite, Mapping):
            copy_directory(self.suite, place)
        else:
            place.mkdir()
            try:
                write_files(self.suite, place)
            except CandidateRefusedError as error:
                raise EvaluationError(f"the suite cannot be written: {error}") from error
        (place / self.report_file).unlink(missing_ok=True)

    async def _run(self, place: Path, seconds: float | None) -> Completed:
        words = [self._filled_in(word) for word in self.command]
        own = {"TMPDIR": str(place.parent / "temporary"), **self.extra_environment}
        try:
            completed = await run_process(
                words,
                cwd=place,
                environment=clean_environment((*DEFAULT_ALLOWED, *self.environment), own),
                seconds=seconds,
                stdout_limit=self.output_limit,
                stderr_limit=self.output_limit,
                launcher=self.launcher,
            )
        except (OSError, ValueError) as error:
            raise EvaluationError(f"the eval runner {words[0]!r} cannot be started: {error}") from error
        return attrs.evolve(
            completed,
            stdout=without_place(completed.stdout, place),
            stderr=without_place(completed.stderr, place),
        )

    def _filled_in(self, word: str) -> str:
        values = {
            "{python}": sys.executable,
            "{report}": self.report_file,
            "{candidate}": self.candidate_file,
        }
        for placeholder, value in values.items():
            word = word.replace(placeholder, value)
        return word

    def _results(self, place: Path, suite_run: SuiteRun) -> tuple[CaseResult, ...]:
        try:
            data = read_regular_file(place, self.report_file, LARGEST_REPORT)
            results = READERS[self.report](without_place(data, place))
        except FileNotFoundError:
            return suite_run.without_report()
        except UnsafeFileError as error:
            raise EvaluationError(f"the report {self.report_file} {error}") from None
        except OSError as error:
            raise EvaluationError(f"the report {self.report_file} cannot be read: {error.strerror}") from error
        except EvaluationError:
            if suite_run.was_cut_off:
                return suite_run.without_report()
            raise
        return suite_run.confirmed(results) if results else suite_run.without_report()


def without_place(output: bytes, place: Path) -> bytes:
    """Output without the name of the directory, which is new each time: equal failures shall read alike."""
    return output.replace(str(place).encode(), b".")

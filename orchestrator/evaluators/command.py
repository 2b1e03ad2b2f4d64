"""An eval suite run as a program: its report, case by case, is the verdict; its exit status never is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.commandline import name_of_command, shorter, split_command, unstartable
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.evaluators.reports import LARGEST_REPORT, READERS
from orchestrator.evaluators.suite_run import SuiteRun
from orchestrator.paths import path_key
from orchestrator.ports import Submission, Verdict
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen, hint
from orchestrator.sandbox.port import EVAL, Launcher, Limits, Place, Profile
from orchestrator.workspace import (
    UnsafeFileError,
    copy_directory,
    digests,
    file_in_archive,
    fresh_directory,
    read_regular_file,
    write_files,
)
from orchestrator_events.isolation import Isolation
from orchestrator_events.verdict import CaseResult

__all__ = ["CommandEvaluator"]

INTEGRITY: Final = "cooperative"
"""The suite's process is the candidate's: it can forge what it reports."""
ARCHIVE_OVERHEAD: Final = 32_768
"""What a tar stream of one file takes beside its content, bytes."""


@attrs.define(eq=False)
class CommandEvaluator:
    """Runs an eval suite on each candidate, in the best sandbox that works here, and reads its report.

    In the command `{python}` is this interpreter, `{report}` the pipe that the report is written to (without
    it, the suite leaves `report_file` beside itself) and `{candidate}` the candidate file; no shell ever runs,
    and a program with a relative path is looked for in the suite.
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
    work: Literal["read-only", "scratch", ""] = attrs.field(default="", kw_only=True)
    """How it sees suite and candidate: read-only, or as a copy that it may write beside (which it is by
    default only when the command has no `{report}`). TMPDIR can be written to in any case."""
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths, kw_only=True)
    """What it may read beside the suite, the interpreter and its program."""
    limits: Limits = attrs.field(default=EVAL.limits, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    """What starts it; None: the best that works, which is found at the first use."""

    def __attrs_post_init__(self) -> None:
        if self.report not in READERS:
            raise ValueError(f"{self.report!r} is no form of report: choose one of {', '.join(READERS)}")
        if self.work not in ("", "read-only", "scratch"):
            raise ValueError(f"{self.work!r} is no way to see the suite: choose read-only or scratch")
        self.name = self.name or name_of_command(self.command)

    @property
    def profile(self) -> Profile:
        """What the suite may do; it never has a network, and nothing of the host that it could change."""
        return attrs.evolve(EVAL, readable=self.readable, limits=self.limits)

    @property
    def reports_by_pipe(self) -> bool:
        """Whether the command says where the report goes."""
        return any("{report}" in word for word in self.command)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the suite and the candidate, found by trying at the first call.

        Raises IsolationRefusedError, which says what to install, when that is weaker than `require`.
        """
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        return self.launcher.isolation

    async def evaluate(self, submission: Submission) -> Verdict:
        """What the suite reported of the candidate.

        A suite that hangs, crashes or is flooded while it judges gives every expected case as timed out or
        error: never passed, and no reason to stop the run. Raises CandidateRefusedError when the candidate
        cannot be written beside the suite, EvaluationError when the suite itself gives no verdict.
        """
        seconds = shorter(self.seconds, submission.seconds)
        isolation = await self.isolate()
        launcher = self.launcher
        assert launcher is not None
        with fresh_directory() as directory:
            place = self._place(directory / "suite")
            (directory / "temporary").mkdir()
            suite_files = self._lay_out(submission.candidate, place.directory, is_watched=not launcher.collects)
            completed = await self._run(launcher, place, seconds)
            self._refuse_changed(suite_files, place.directory)
            suite_run = SuiteRun(
                completed=completed,
                seconds=seconds,
                expected=submission.expected,
                report_file=self.report_file,
                hint=hint(launcher, place.profile, completed.stderr),
            )
            return Verdict(self._results(launcher, place.directory, suite_run), isolation.label, INTEGRITY)

    def _place(self, directory: Path) -> Place:
        collects = "" if self.reports_by_pipe else self.report_file
        work = self.work or ("scratch" if collects else "read-only")
        if collects and work == "read-only":
            raise EvaluationError("the suite cannot leave its report read-only: put {report} into its command")
        return Place(directory=directory, profile=self.profile, work=work, collects=collects)

    def _lay_out(self, candidate: Candidate, place: Path, *, is_watched: bool) -> dict[str, bytes]:
        """Write suite and candidate; the digests of the suite's files where nothing else keeps them as they are."""
        files = candidate.files or {self.candidate_file: candidate.text}
        if "" in files:
            raise EvaluationError("the candidate is one text: name its file with candidate_file")
        if path_key(self.report_file) in map(path_key, files):
            raise CandidateRefusedError(f"the candidate holds {self.report_file}, which the suite writes")
        try:
            self._lay_out_suite(place)
            found = digests(place) if is_watched else {}
            write_files(files, place)
        except OSError as error:
            raise EvaluationError(f"suite and candidate cannot be written: {error}") from error
        return found

    def _refuse_changed(self, suite_files: Mapping[str, bytes], place: Path) -> None:
        """No verdict by a suite that was changed while it judged."""
        now = digests(place) if suite_files else {}
        changed = sorted(path for path, digest in suite_files.items() if now.get(path) != digest)
        if changed:
            raise EvaluationError(
                f"the suite's own files were changed while it ran: {', '.join(changed[:5])}; "
                "let it write elsewhere, or install a sandbox that keeps them (apt install bubblewrap)"
            )

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

    async def _run(self, launcher: Launcher, place: Place, seconds: float | None) -> Completed:
        words = [self._filled_in(word, launcher.python) for word in self.command]
        by_pipe = self.reports_by_pipe or launcher.collects
        try:
            completed = await run_process(
                words,
                cwd=place.directory,
                environment=clean_environment(
                    (*DEFAULT_ALLOWED, *self.environment), self._own_variables(launcher, place)
                ),
                seconds=seconds,
                stdout_limit=self.output_limit,
                stderr_limit=self.output_limit,
                launcher=launcher,
                place=place,
                report_limit=LARGEST_REPORT + (ARCHIVE_OVERHEAD if place.collects else 0) if by_pipe else None,
            )
        except (OSError, ValueError) as error:
            fault = unstartable(words, place.directory)
            told = "" if fault else hint(launcher, place.profile, str(error).encode())
            reason = f"the eval runner {words[0]!r} cannot be started: {fault or error}"
            raise EvaluationError(" ".join(filter(None, (reason, told)))) from error
        return attrs.evolve(
            completed,
            stdout=without_place(completed.stdout, place.directory),
            stderr=without_place(completed.stderr, place.directory),
        )

    def _own_variables(self, launcher: Launcher, place: Place) -> dict[str, str]:
        temporary = str(place.directory.parent / "temporary")
        # pytest would warn of a cache that it cannot write, and some suites make warnings errors
        is_read_only = launcher.collects and place.work == "read-only"
        quiet = {"PYTEST_ADDOPTS": "-o cache_dir=/tmp/.pytest_cache"} if is_read_only else {}
        return {"TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1", **quiet, **self.extra_environment}

    def _filled_in(self, word: str, python: str) -> str:
        """The word with its placeholders filled in; where the report goes is filled in when it is started."""
        return word.replace("{python}", python).replace("{candidate}", self.candidate_file)

    def _results(self, launcher: Launcher, place: Path, suite_run: SuiteRun) -> tuple[CaseResult, ...]:
        try:
            data = self._report(launcher, place, suite_run.completed)
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

    def _report(self, launcher: Launcher, place: Path, completed: Completed) -> bytes:
        """The bytes of the report; FileNotFoundError when there is none."""
        if not self.reports_by_pipe and not launcher.collects:
            return read_regular_file(place, self.report_file, LARGEST_REPORT)
        if not completed.report or (self.reports_by_pipe and completed.exceeded == "report"):
            raise FileNotFoundError(self.report_file)
        if self.reports_by_pipe:
            return completed.report
        if completed.exceeded == "report":
            raise UnsafeFileError(f"is too large: at most {LARGEST_REPORT} bytes are read")
        return file_in_archive(completed.report, self.report_file, LARGEST_REPORT)


def without_place(output: bytes, place: Path) -> bytes:
    """Output without the name of the directory, which is new each time: equal failures shall read alike."""
    return output.replace(str(place).encode(), b".")

"""Checks: what QA, security and integration really run on a step's output, and the evidence they capture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import attrs

from orchestrator.adapter_errors import CandidateRefusedError
from orchestrator.commandline import shorter, split_command
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.plan.gates import Evidence
from orchestrator.plan.routing import ReviewKind
from orchestrator.process import run_process
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen
from orchestrator.sandbox.port import EVAL, Launcher, Place, Profile
from orchestrator.workspace import copy_directory, fresh_directory, write_files
from orchestrator_events.isolation import Isolation

__all__ = ["Check", "CommandCheck", "Examination"]

OUTPUT_FILE: Final = "output.md"


@attrs.frozen(kw_only=True)
class Examination:
    """What a check looks at."""

    step_id: str
    output: str
    """The step's output, as it came."""
    files: Mapping[str, str]
    """What the step makes, and what earlier steps made, by name."""
    seconds: float | None
    """Time there is; None without a time limit."""


class Check(Protocol):
    """Runs something on an output and captures what it says; raising means that it could not be run."""

    kind: ReviewKind
    steps: tuple[str, ...]
    """Ids of the steps it is for; empty: for every step that asks for its kind."""

    async def look(self, examination: Examination) -> Evidence:
        """What was captured."""
        ...


@attrs.define(eq=False)
class CommandCheck:
    """Runs a program on the files of a step, in the best sandbox that works here; its captured output is evidence.

    In the command `{python}` is this interpreter; no shell ever runs. It works in a fresh directory with the files,
    the output as `output.md`, and over them the suite, which no candidate can replace.
    """

    kind: ReviewKind = attrs.field(converter=ReviewKind)
    command: tuple[str, ...] = attrs.field(converter=split_command)
    suite: Path | Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    """A directory, or relative path to text, that is laid beside the files."""
    steps: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...], kw_only=True)
    seconds: float | None = attrs.field(default=60, kw_only=True)
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """What it may write to each stream, bytes; one that writes more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones."""
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    """What starts it; None: the best that works, which is found at the first use."""

    @property
    def profile(self) -> Profile:
        """What it may reach."""
        return attrs.evolve(EVAL, readable=self.readable)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the program, found by trying at the first call; IsolationRefusedError when that is too little."""
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        return self.launcher.isolation

    async def look(self, examination: Examination) -> Evidence:
        """Run it; what it wrote to both streams, how it ended, and what held it in."""
        isolation = await self.isolate()
        assert self.launcher is not None
        seconds = shorter(self.seconds, examination.seconds)
        with fresh_directory() as directory:
            work, temporary = directory / "work", directory / "temporary"
            temporary.mkdir()
            self.lay_out(work, examination)
            completed = await run_process(
                [word.replace("{python}", self.launcher.python) for word in self.command],
                cwd=work,
                environment=clean_environment(
                    (*DEFAULT_ALLOWED, *self.environment),
                    {"TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"},
                ),
                seconds=seconds,
                stdout_limit=self.output_limit,
                stderr_limit=self.output_limit,
                launcher=self.launcher,
                place=Place(directory=work, profile=self.profile, work="scratch"),
            )
        is_stopped = completed.timed_out or bool(completed.exceeded)
        return Evidence(
            kind=self.kind,
            command=self.command,
            exit_status=None if is_stopped or completed.returncode < 0 else completed.returncode,
            output=(completed.stdout + completed.stderr).replace(str(work).encode(), b"."),
            isolation=attrs.evolve(isolation, probes=(), limits=()),  # the step's second record has them
        )

    def lay_out(self, work: Path, examination: Examination) -> None:
        """The files, and the suite in place of any that has one of its names."""
        if isinstance(self.suite, Path):
            copy_directory(self.suite, work)
        else:
            work.mkdir()
            write_files(dict(self.suite), work)
        for name, text in {**examination.files, OUTPUT_FILE: examination.output}.items():
            try:
                write_files({name: text}, work)
            except CandidateRefusedError:
                continue  # the suite has a file of this name, which stays

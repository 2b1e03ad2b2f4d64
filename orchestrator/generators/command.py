"""A program as a generator: the prompt goes in on standard input, the candidate comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.commandline import (
    ending,
    located_program,
    name_of_command,
    shorter,
    split_command,
    unstartable,
)
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.excerpt import tail
from orchestrator.generators.protocol import read_generation, write_request
from orchestrator.paths import MOST_FILES
from orchestrator.ports import Generation, Request
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen, hint
from orchestrator.sandbox.port import ALL_FILES, GENERATOR, Launcher, Limits, Place, Profile
from orchestrator.workspace import fresh_directory, read_archive, read_files
from orchestrator_events.isolation import Isolation

__all__ = ["CommandGenerator"]

STDERR_LIMIT: Final = 1_000_000
"""What a program may write to standard error, bytes."""
ARCHIVE_OVERHEAD: Final = 2048 * MOST_FILES
"""What a tar stream of files takes beside their content, bytes."""


@attrs.define(eq=False)
class CommandGenerator:
    """Runs a program for every candidate, never through a shell, in the best sandbox that works here.

    `input`: the prompt alone (text), or the whole Request as JSON. `output`: standard output byte for byte
    (text), a JSON object with `candidate` or `files` and perhaps `usage` (json), or every file that the
    program leaves in the empty directory it is started in (files; the working directory is then not `cwd`).
    In a sandbox it reads its program, the interpreter, `cwd` and what is `readable`, and changes nothing.
    """

    command: tuple[str, ...] = attrs.field(converter=split_command)
    name: str = attrs.field(default="", kw_only=True)
    """Identifies it in records and over a resume; by default the program and a digest of the command."""
    input: Literal["text", "json"] = attrs.field(default="text", kw_only=True)
    output: Literal["text", "json", "files"] = attrs.field(default="text", kw_only=True)
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones; a trailing `*` stands for any ending."""
    extra_environment: Mapping[str, str] = attrs.field(factory=dict, repr=False, kw_only=True)
    cwd: Path | None = attrs.field(default=None, kw_only=True)
    """Where it runs; None is the host's own working directory."""
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """Largest answer, bytes; a program that writes more is stopped."""
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True)
    seconds: float | None = attrs.field(default=None, kw_only=True)
    """Time of one call; the shorter of this and what the request allows holds."""
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths, kw_only=True)
    """What it may read beside that: its configuration, its models; `~` is the user's home, which is hidden else."""
    network: Literal["host", "none"] = attrs.field(default="host", kw_only=True)
    limits: Limits = attrs.field(default=GENERATOR.limits, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    """What starts it; None: the best that works, which is found at the first use."""
    isolation: str = attrs.field(default="none", init=False)
    """The level in force, as soon as it is known."""

    def __attrs_post_init__(self) -> None:
        for given, choices in ((self.input, ("text", "json")), (self.output, ("text", "json", "files"))):
            if given not in choices:
                raise ValueError(f"{given!r} is no form of input or output: choose one of {', '.join(choices)}")
        if self.network not in ("host", "none"):
            raise ValueError(f"{self.network!r} is no network: choose host or none")
        self.name = self.name or name_of_command(self.command)

    @property
    def profile(self) -> Profile:
        """What the program may do."""
        return attrs.evolve(GENERATOR, network=self.network == "host", readable=self.readable, limits=self.limits)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the program, found by trying at the first call.

        Raises IsolationRefusedError, which says what to install, when that is weaker than `require`.
        """
        return (await self._held(require)).isolation

    async def generate(self, request: Request) -> Generation:
        """What the program answered.

        Raises GeneratorUnavailableError when it cannot be started, GenerationError with the reason and the
        last lines of its standard error when it gave no candidate.
        """
        request = attrs.evolve(request, seconds=shorter(self.seconds, request.seconds))
        launcher = await self._held()
        if self.output != "files":
            place = Place(directory=(self.cwd or Path.cwd()).absolute(), profile=self.profile)
            return self._answer((await self._run(launcher, request, self.command, place)).stdout)
        with fresh_directory() as directory:
            place = Place(directory=directory, profile=self.profile, work="scratch", collects=ALL_FILES)
            completed = await self._run(launcher, request, located_program(self.command), place)
            limit = self.output_limit
            files = read_archive(completed.report, limit) if launcher.collects else read_files(directory, limit)
            return Generation(candidate=Candidate(files=files))

    async def _held(self, require: str = "none") -> Launcher:
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        self.isolation = self.launcher.isolation.label
        return self.launcher

    async def _run(self, launcher: Launcher, request: Request, command: Sequence[str], place: Place) -> Completed:
        if fault := unstartable(command, place.directory):
            raise GeneratorUnavailableError(f"{command[0]!r} cannot be started: {fault}")
        try:
            completed = await run_process(
                command,
                stdin=self._input(request),
                cwd=place.directory,
                environment=clean_environment((*DEFAULT_ALLOWED, *self.environment), self.extra_environment),
                seconds=request.seconds,
                stdout_limit=self.output_limit,
                stderr_limit=STDERR_LIMIT,
                launcher=launcher,
                place=place,
                report_limit=self.output_limit + ARCHIVE_OVERHEAD if place.collects and launcher.collects else None,
            )
        except (OSError, ValueError) as error:
            reason = f"{command[0]!r} cannot be started: {error}"
            told = hint(launcher, place.profile, str(error).encode())
            raise GeneratorUnavailableError(" ".join(filter(None, (reason, told)))) from error
        if completed.exceeded == "report":
            raise GenerationError(f"{self.name} left more than {self.output_limit} bytes of files")
        failure = ending(completed, request.seconds)
        if failure:
            # Some programs tell their errors on standard output.
            said = completed.stderr if completed.stderr.strip() else completed.stdout
            told = hint(launcher, place.profile, said, is_suspected=completed.returncode > 0)
            lines = (f"{self.name} {failure}", tail(said) if completed.exceeded != "stdout" else "")
            raise GenerationError(":\n".join(filter(None, lines)), remedy=told)
        return completed

    def _input(self, request: Request) -> bytes:
        return write_request(request) if self.input == "json" else request.prompt.encode()

    def _answer(self, stdout: bytes) -> Generation:
        try:
            text = stdout.decode()
        except UnicodeDecodeError as error:
            raise GenerationError(f"{self.name} wrote what is not UTF-8 at byte {error.start}") from None
        if not text.strip():
            raise GenerationError(f"{self.name} ended well but wrote nothing to standard output")
        return read_generation(text) if self.output == "json" else Generation(candidate=Candidate(text))

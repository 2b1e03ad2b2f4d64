"""A program as a generator: the prompt goes in on standard input, the candidate comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.commandline import ending, located_program, name_of_command, shorter, split_command
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.excerpt import tail
from orchestrator.generators.protocol import read_generation, write_request
from orchestrator.ports import Generation, Request
from orchestrator.process import CONTAINMENT, Completed, Launcher, run_process
from orchestrator.workspace import fresh_directory, read_files

__all__ = ["CommandGenerator"]

STDERR_LIMIT: Final = 1_000_000
"""What a program may write to standard error, bytes."""


@attrs.define(eq=False)
class CommandGenerator:
    """Runs a program for every candidate, never through a shell, and kills it with all it started.

    `input`: the prompt alone (text), or the whole Request as JSON. `output`: standard output byte for byte
    (text), a JSON object with `candidate` or `files` and perhaps `usage` (json), or every file that the
    program leaves in the empty directory it is started in (files; the working directory is then not `cwd`).
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
    launcher: Launcher = attrs.field(default=CONTAINMENT, kw_only=True)
    isolation: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        for given, choices in ((self.input, ("text", "json")), (self.output, ("text", "json", "files"))):
            if given not in choices:
                raise ValueError(f"{given!r} is no form of input or output: choose one of {', '.join(choices)}")
        self.name = self.name or name_of_command(self.command)
        self.isolation = self.launcher.isolation

    async def generate(self, request: Request) -> Generation:
        """What the program answered.

        Raises GeneratorUnavailableError when it cannot be started, GenerationError with the reason and the
        last lines of its standard error when it gave no candidate.
        """
        request = attrs.evolve(request, seconds=shorter(self.seconds, request.seconds))
        if self.output != "files":
            completed = await self._run(request, self.command, self.cwd or Path.cwd())
            return self._answer(completed.stdout)
        with fresh_directory() as directory:
            await self._run(request, located_program(self.command), directory)
            return Generation(candidate=Candidate(files=read_files(directory, self.output_limit)))

    async def _run(self, request: Request, command: Sequence[str], directory: Path) -> Completed:
        try:
            completed = await run_process(
                command,
                stdin=self._input(request),
                cwd=directory,
                environment=clean_environment((*DEFAULT_ALLOWED, *self.environment), self.extra_environment),
                seconds=request.seconds,
                stdout_limit=self.output_limit,
                stderr_limit=STDERR_LIMIT,
                launcher=self.launcher,
            )
        except (OSError, ValueError) as error:
            raise GeneratorUnavailableError(f"{command[0]!r} cannot be started: {error}") from error
        failure = ending(completed, request.seconds)
        if failure:
            said = tail(completed.stderr)
            raise GenerationError(f"{self.name} {failure}" + (f":\n{said}" if said else ""))
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

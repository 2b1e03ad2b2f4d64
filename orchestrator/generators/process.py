"""A Python function as a generator, called in a child process that can be killed and held in."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NoReturn

import attrs

import orchestrator_events
import orchestrator_states
from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.commandline import ending, shorter
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.excerpt import excerpt, tail
from orchestrator.generators import protocol
from orchestrator.ports import Generation, Request
from orchestrator.process import Completed, Launcher, run_process
from orchestrator.sandbox.choice import SandboxChoice, absolute_paths, chosen, hint
from orchestrator.sandbox.port import GENERATOR, Limits, Place, Profile
from orchestrator_events.isolation import Isolation

__all__ = ["ProcessGenerator"]

PRINTED_LIMIT: Final = 1_000_000
"""What a function and its child process may print to each stream, bytes."""
IMPORT_S: Final = 60.0
"""Longest that looking the function up may take before a run, seconds."""
LOOK_UP: Final = b""
"""What the child process reads when it is to look the function up without calling it."""
START: Final = (
    "import sys; given = __import__('json').loads(sys.argv[1]); sys.path += given['roots']; "
    "from orchestrator.generators.callee import main; main(given['function'], tuple(given['path']), sys.argv[2])"
)
"""What the child process runs; the package is found there wherever this process found it."""


def directories(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """The paths, absolute; a lone text, which would be taken letter by letter, is a TypeError."""
    if isinstance(paths, str):
        raise TypeError(f"path must be a list of directories: write ({paths!r},)")
    return tuple(Path(path).absolute() for path in paths)


@attrs.define(eq=False)
class ProcessGenerator:
    """Calls a plain function `(Request) -> str | mapping of path to text | Candidate | Generation`.

    Each call has a child process of its own, which imports the function's module, is killed with all it started
    at the deadline, and is held in by the best sandbox that works here. What the function prints goes to
    standard error; the last lines of it explain a failure.
    """

    function: str
    """`module:function`."""
    name: str = attrs.field(default="", kw_only=True)
    """Identifies it in records and over a resume; by default `function`."""
    seconds: float | None = attrs.field(default=None, kw_only=True)
    """Time of one call; the shorter of this and what the request allows holds."""
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """Largest answer, bytes of JSON; a function that gives more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones; a trailing `*` stands for any ending."""
    path: tuple[Path, ...] = attrs.field(default=(), converter=directories, kw_only=True)
    """Directories in which its module is looked for first; by default the working directory."""
    cwd: Path | None = attrs.field(default=None, kw_only=True)
    """Where it runs; None is the host's own working directory."""
    readable: tuple[Path, ...] = attrs.field(default=(), converter=absolute_paths, kw_only=True)
    """What it may read beside `path`, `cwd` and the interpreter; `~` is the user's home, which is hidden else."""
    network: Literal["host", "none"] = attrs.field(default="host", kw_only=True)
    limits: Limits = attrs.field(default=GENERATOR.limits, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    """What starts the child process; None: the best sandbox that works here, found at the first use."""
    isolation: str = attrs.field(default="none", init=False)
    """The level in force, as soon as it is known."""

    def __attrs_post_init__(self) -> None:
        module, colon, names = self.function.partition(":")
        parts = [*module.split("."), *names.split(".")]
        if not colon or not all(part.isidentifier() for part in parts):
            raise GeneratorUnavailableError(
                f"{self.function!r} names no function: write it as 'module:function', such as 'my_model:generate'"
            )
        self.name = self.name or self.function

    @property
    def profile(self) -> Profile:
        """What the child process may do."""
        readable = tuple(dict.fromkeys((*self.readable, *self.path, *packages())))
        return attrs.evolve(GENERATOR, network=self.network == "host", readable=readable, limits=self.limits)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the child process, found by trying at the first call, and that the function is there.

        Raises IsolationRefusedError, which says what to install, when that is weaker than `require`, and
        GeneratorUnavailableError when the function cannot be imported, held in as it is when it is called.
        """
        launcher = await self._held(require)
        await self._look_up(launcher)
        return launcher.isolation

    async def generate(self, request: Request) -> Generation:
        """What the function answered.

        Raises GeneratorUnavailableError when there is no such function or no process can be started,
        GenerationError with the reason when it gave no candidate, and whichever of both it raises itself.
        """
        request = attrs.evolve(request, seconds=shorter(self.seconds, request.seconds))
        launcher = await self._held()
        completed = await self._run(launcher, protocol.write_request(request), request.seconds)
        if completed.exceeded == "report":
            raise GenerationError(f"{self.name} answered with more than {self.output_limit} bytes")
        failure = ending(completed, request.seconds)
        if failure:
            self._fail(failure, completed, hint(launcher, self.profile, completed.stderr))
        word, _, content = self._report(completed).partition("\n")
        match word:
            case "answer":
                return protocol.read_generation(content)
            case "unavailable":
                told = hint(launcher, self.profile, content.encode())
                raise GeneratorUnavailableError(" ".join(filter(None, (excerpt(content), told))))
            case "transient":
                raise transient(content)
            case "failed":
                told = hint(launcher, self.profile, completed.stderr)
                self._fail(f"failed: {excerpt(content)}", completed, told)
        self._fail("ended without an answer", completed)
        return None

    async def _held(self, require: str = "none") -> Launcher:
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        self.isolation = self.launcher.isolation.label
        return self.launcher

    async def _look_up(self, launcher: Launcher) -> None:
        seconds = shorter(self.seconds, IMPORT_S)
        completed = await self._run(launcher, LOOK_UP, seconds)
        word, _, content = completed.report.decode(errors="replace").partition("\n")
        if word == "ready":
            return
        reason = excerpt(content)
        if word != "unavailable":
            failure = ending(completed, seconds) or "gave no answer"
            failure = f"{self.function!r} cannot be imported: its process {failure}"
            reason = ":\n".join(filter(None, (failure, tail(completed.stderr))))
        told = hint(launcher, self.profile, content.encode() or completed.stderr)
        raise GeneratorUnavailableError(" ".join(filter(None, (reason, told))))

    async def _run(self, launcher: Launcher, stdin: bytes, seconds: float | None) -> Completed:
        directory = (self.cwd or Path.cwd()).absolute()
        given = {"function": self.function, "path": self._path(), "roots": [str(root) for root in roots()]}
        try:
            return await run_process(
                (launcher.python, "-P", "-c", START, json.dumps(given), "{report}"),
                stdin=stdin,
                cwd=directory,
                environment=clean_environment((*DEFAULT_ALLOWED, *self.environment)),
                seconds=seconds,
                stdout_limit=PRINTED_LIMIT,
                stderr_limit=PRINTED_LIMIT,
                launcher=launcher,
                place=Place(directory=directory, profile=self.profile),
                report_limit=self.output_limit,
            )
        except (OSError, ValueError) as error:
            raise GeneratorUnavailableError(f"{self.name}: no process can be started: {error}") from error

    def _path(self) -> list[str]:
        return [str(path) for path in self.path or ((self.cwd or Path.cwd()).absolute(),)]

    def _report(self, completed: Completed) -> str:
        try:
            return completed.report.decode()
        except UnicodeDecodeError as error:
            raise GenerationError(f"{self.name} reported what is not UTF-8 at byte {error.start}") from None

    def _fail(self, failure: str, completed: Completed, told: str = "") -> NoReturn:
        said = tail(completed.stderr)
        raise GenerationError(f"{self.name} {failure}" + (f":\n{said}" if said else ""), remedy=told)


def transient(content: str) -> TransientGenerationError:
    """The error that the function raised, or one without a wait where it told no sane one."""
    try:
        told = json.loads(content)
        reason, wait = str(told["reason"]), told["retry_after"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return TransientGenerationError(excerpt(content))
    is_sane = type(wait) in (int, float) and 0 <= wait < float("inf")
    return TransientGenerationError(excerpt(reason), retry_after=wait if is_sane else None)


def packages() -> list[Path]:
    """Our own packages, which the child process imports; those that are installed, a sandbox shows by itself."""
    modules = (sys.modules["orchestrator"], orchestrator_events, orchestrator_states)
    places = [Path(str(module.__file__)).parent for module in modules]
    return [place for place in places if not place.is_relative_to(sys.prefix)]


def roots() -> list[Path]:
    """The directories our packages are in."""
    return list(dict.fromkeys(package.parent for package in packages()))

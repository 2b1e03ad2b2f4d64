"""Tools on a directory: read, write, edit and list its files, run a command in it, verify what stands in it.

Every path is taken below the directory and no link is followed on the way, whatever a model asks for and whatever
a command has left there. A file is written beside its place and moved over it, so that a reader never sees half
of one, and a hard link that a command made to some other file keeps that file as it was.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.candidate import Candidate
from orchestrator.commandline import ending, shorter
from orchestrator.environment import DEFAULT_ALLOWED, clean_environment, variable_names
from orchestrator.evaluators.callable import as_evaluator
from orchestrator.excerpt import excerpt
from orchestrator.isolating import isolation_of
from orchestrator.jsondata import JSON
from orchestrator.judgement import Expectation, judge
from orchestrator.paths import MOST_FILES, refuse_unsafe_paths
from orchestrator.ports import Evaluator, Submission
from orchestrator.process import run_process
from orchestrator.sandbox.choice import SandboxChoice, chosen, hint
from orchestrator.sandbox.port import GENERATOR, Launcher, Limits, Place, Profile
from orchestrator.spec import MergedSpec
from orchestrator.verdicts import checked_verdict
from orchestrator.workspace import UnsafeFileError, read_files, read_regular_file
from orchestrator_events.isolation import Isolation

__all__ = [
    "EditFile",
    "ListFiles",
    "ReadFile",
    "RunCommand",
    "VerifyProgress",
    "Workspace",
    "WorkspacePathError",
    "WriteFile",
]

FILE_LIMIT: Final = 1_000_000
"""Largest file that is read or written unless another limit is given, bytes."""
SHOWN_CASES: Final = 20
"""Failing cases that a verification shows."""

BELOW_WORKSPACE: Final = Isolation(
    level="strong", backend="paths", limits=("files below the workspace",), not_enforced=("size of the workspace",)
)
"""What holds the tools for files in: they start no program, and no path leads them out of the workspace."""
TEXT: Final[Mapping[str, JSON]] = MappingProxyType({"type": "string"})
PATH: Final[Mapping[str, JSON]] = MappingProxyType(
    {"type": "string", "description": "Path of the file, relative to the workspace."}
)


class WorkspacePathError(ValueError):
    """A path leads to no plain file of the workspace; `path` is what was asked for."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{excerpt(path, 200)!r} {reason}: give a path relative to the workspace, such as src/main.py")


def existing(directory: str | os.PathLike[str]) -> Path:
    """The directory with its own links followed; it has to be there."""
    return Path(directory).resolve(strict=True)


@attrs.frozen
class Workspace:
    """A directory that an agent works in, by paths relative to it."""

    directory: Path = attrs.field(converter=existing)
    file_limit: int = attrs.field(default=FILE_LIMIT, kw_only=True)
    """Largest file that is read or written, bytes."""

    def read(self, path: str) -> str:
        """The text of a file. Raises WorkspacePathError, FileNotFoundError, or ValueError for what is no text."""
        relative = self.relative(path)
        try:
            data = read_regular_file(self.directory, relative, self.file_limit)
        except UnsafeFileError as error:
            raise WorkspacePathError(path, str(error)) from None
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file {relative!r}") from None
        except OSError as error:
            raise WorkspacePathError(path, f"cannot be read ({error.strerror})") from None
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"{relative!r} is not UTF-8 at byte {error.start}") from None

    def write(self, path: str, text: str) -> int:
        """Put a text in place of a file, making the directories above it; its bytes.

        Raises WorkspacePathError, and ValueError for a text that is too long or holds a lone surrogate.
        """
        relative = self.relative(path)
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the text holds a lone surrogate at character {error.start}") from None
        if len(data) > self.file_limit:
            raise ValueError(f"the text has {len(data)} bytes, a file may have {self.file_limit}")
        try:
            with self.folder_of(relative) as (folder, name):
                put(folder, name, data)
        except OSError as error:
            raise WorkspacePathError(path, f"cannot be written ({error.strerror})") from None
        return len(data)

    def paths(self) -> tuple[str, ...]:
        """Every file, in order, at most a thousand; links and devices are told, too, and none is followed."""
        found: list[str] = []
        for folder, folders, names in os.walk(self.directory):
            links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
            folders[:] = sorted(set(folders) - set(links))
            found += [os.path.relpath(os.path.join(folder, name), self.directory) for name in sorted([*names, *links])]
            if len(found) > MOST_FILES:
                break
        return tuple(found[:MOST_FILES])

    def files(self, limit: int) -> dict[str, str]:
        """All files; GenerationError, which says why, when they are no plain texts or more than `limit` bytes."""
        return read_files(self.directory, limit)

    def relative(self, path: str) -> str:
        """The path below the workspace; one that begins with the workspace's own place counts as relative."""
        if not path.strip():
            raise WorkspacePathError(path, "names no file")
        inside = path.removeprefix(f"{self.directory}/") if path.startswith("/") else path
        try:
            relative = inside if inside.startswith("/") else PurePosixPath(inside).as_posix()
            refuse_unsafe_paths([relative])
        except CandidateRefusedError as error:
            reason = str(error).rpartition("' ")[2] or str(error)
            raise WorkspacePathError(path, reason) from None
        return relative

    @contextmanager
    def folder_of(self, relative: str) -> Iterator[tuple[int, str]]:
        """Descriptor of the directory that a file is to be in, made if need be, and the file's name there."""
        *folders, name = PurePosixPath(relative).parts
        opened = [os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)]
        try:
            for folder in folders:
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=opened[-1])
                opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
            yield opened[-1], name
        finally:
            for descriptor in opened:
                os.close(descriptor)


def put(folder: int, name: str, data: bytes) -> None:
    """Write a file beside its place and move it there; OSError where something else than a file is in the way."""
    mode = 0o600
    with suppress(FileNotFoundError):
        found = os.lstat(name, dir_fd=folder)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "something else than a file is there")
        mode = stat.S_IMODE(found.st_mode)
    beside = f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(beside, flags, mode, dir_fd=folder), "wb") as file:
            file.write(data)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def schema_of(required: Mapping[str, Mapping[str, JSON]]) -> dict[str, JSON]:
    """The JSON Schema of arguments that must all be there."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in required.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def text_in(request: CallRequest, name: str) -> str:
    """A text among the arguments; ValueError, which the model reads, when it is none."""
    value = request.arguments.get(name)
    if not isinstance(value, str):
        raise ValueError(f"the argument {name!r} must be a text, not {type(value).__name__}")  # noqa: TRY004 -- the model's
    return value


def done(output: str, data: JSON = None) -> ToolOutcome:
    """A call that did what was asked."""
    return ToolOutcome(is_success=True, output=output, data=data)


def failed(error: Exception) -> ToolOutcome:
    """A call that could not do it, with the reason."""
    return ToolOutcome(is_success=False, output=str(error))


@attrs.define(eq=False)
class ReadFile:
    """Reads a file of the workspace."""

    workspace: Workspace
    name: str = attrs.field(default="read_file", kw_only=True)
    description: str = attrs.field(default="Read a text file of the workspace.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"path": PATH}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """The file's text."""
        try:
            return done(self.workspace.read(text_in(request, "path")))
        except (ValueError, OSError) as error:
            return failed(error)


@attrs.define(eq=False)
class WriteFile:
    """Writes a whole file of the workspace; the same call again leaves the same file, so it is idempotent."""

    workspace: Workspace
    name: str = attrs.field(default="write_file", kw_only=True)
    description: str = attrs.field(default="Write a text file of the workspace, replacing what is there.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"path": PATH, "content": TEXT}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Write it."""
        try:
            path = text_in(request, "path")
            size = self.workspace.write(path, text_in(request, "content"))
        except (ValueError, OSError) as error:
            return failed(error)
        return done(f"wrote {size} bytes to {self.workspace.relative(path)}")


@attrs.define(eq=False)
class EditFile:
    """Replaces one passage of a file, which must stand there exactly once."""

    workspace: Workspace
    name: str = attrs.field(default="edit_file", kw_only=True)
    description: str = attrs.field(
        default="Replace a passage of a file; `old` must stand in it exactly once.", kw_only=True
    )
    schema: Mapping[str, JSON] = attrs.field(
        factory=lambda: schema_of({"path": PATH, "old": TEXT, "new": TEXT}), kw_only=True
    )
    is_idempotent: bool = attrs.field(default=False, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Replace it."""
        try:
            path, old, new = (text_in(request, name) for name in ("path", "old", "new"))
            self.workspace.write(path, replaced(self.workspace.read(path), old, new))
        except (ValueError, OSError) as error:
            return failed(error)
        return done(f"replaced one passage of {self.workspace.relative(path)}")


def replaced(text: str, old: str, new: str) -> str:
    """The text with one passage replaced; ValueError where it does not stand there exactly once."""
    if not old:
        raise ValueError("`old` is empty: give the passage to replace, or write the whole file")
    if (count := text.count(old)) != 1:
        raise ValueError(f"`old` stands {count} times in the file: give a passage that stands there once")
    return text.replace(old, new)


@attrs.define(eq=False)
class ListFiles:
    """Lists the files of the workspace."""

    workspace: Workspace
    name: str = attrs.field(default="list_files", kw_only=True)
    description: str = attrs.field(default="List every file of the workspace.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:  # noqa: ARG002 -- the port's signature
        """Their paths, one a line."""
        paths = self.workspace.paths()
        return done("\n".join(paths) or "(the workspace is empty)", list(paths))


@attrs.define(eq=False)
class RunCommand:
    """Runs a shell command in the workspace, in the best sandbox that works here; only the workspace is writable.

    What it wrote is shown from its end, where errors stand; the exit status is in the structured result.
    """

    workspace: Workspace
    name: str = attrs.field(default="run_command", kw_only=True)
    seconds: float = attrs.field(default=60.0, kw_only=True)
    """What one command may take; the shorter of this and what the call has holds."""
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """What it may write to each output stream, bytes; one that writes more is stopped."""
    environment: tuple[str, ...] = attrs.field(default=(), converter=variable_names, kw_only=True)
    """Names of variables to pass on beside the harmless ones."""
    network: bool = attrs.field(default=False, kw_only=True)
    limits: Limits = attrs.field(default=GENERATOR.limits, kw_only=True)
    sandbox: SandboxChoice = attrs.field(default=SandboxChoice(), kw_only=True)
    launcher: Launcher | None = attrs.field(default=None, kw_only=True)
    description: str = attrs.field(
        default="Run a shell command in the workspace and read what it writes.", kw_only=True
    )
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"command": TEXT}), kw_only=True)
    is_idempotent: bool = attrs.field(default=False, init=False)

    @property
    def profile(self) -> Profile:
        """What a command may do."""
        return Profile(
            name="agent",
            network=self.network,
            writable=(self.workspace.directory,),
            limits=self.limits,
            owns_files=False,
        )

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the commands, found by trying; IsolationRefusedError when it is weaker than `require`."""
        self.launcher = await chosen(self.launcher, self.profile, self.sandbox, require)
        return self.launcher.isolation

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Run it to its end."""
        try:
            command = text_in(request, "command")
        except ValueError as error:
            return failed(error)
        if "\0" in command:
            return ToolOutcome(is_success=False, output="the command holds a NUL character: leave it out")
        await self.isolate()
        launcher, seconds = self.launcher, shorter(self.seconds, request.seconds)
        assert launcher is not None
        completed = await run_process(
            ["/bin/sh", "-c", command],
            cwd=self.workspace.directory,
            environment=clean_environment((*DEFAULT_ALLOWED, *self.environment)),
            seconds=seconds,
            stdout_limit=self.output_limit,
            stderr_limit=self.output_limit,
            launcher=launcher,
            place=Place(directory=self.workspace.directory, profile=self.profile),
        )
        failure = ending(completed, seconds)
        said = [completed.stdout, completed.stderr]
        parts = [
            text
            for text in (excerpt(each.decode(errors="replace"), self.output_limit).strip() for each in said)
            if text
        ]
        parts += [f"(the command {failure})" if failure else "", hint(launcher, self.profile, completed.stderr)]
        status: JSON = {"status": completed.returncode, "timed_out": completed.timed_out, "cut_off": completed.exceeded}
        output = "\n".join(filter(None, parts)) or "(it wrote nothing)"
        return ToolOutcome(is_success=not failure, output=output, data=status)


@attrs.define(eq=False)
class VerifyProgress:
    """Runs an eval suite on the files as they stand; the counts are structured, and no text is ever parsed for them.

    Done means that there is a verdict, whatever it is; `data` has `passed`, `total` and `failing`. An empty suite
    is no verdict.
    """

    workspace: Workspace
    evaluator: Evaluator = attrs.field(converter=as_evaluator)
    spec: MergedSpec
    name: str = attrs.field(default="verify_progress", kw_only=True)
    expected: frozenset[str] | None = attrs.field(default=None, kw_only=True)
    """Ids that must pass; None: those that the spec names, or whichever are reported."""
    language: str = attrs.field(default="python", kw_only=True)
    candidate_file: str = attrs.field(default="", kw_only=True)
    """The one file that is judged, as a text; empty: all of them."""
    limit: int = attrs.field(default=FILE_LIMIT, kw_only=True)
    """Largest sum of all files, bytes."""
    description: str = attrs.field(default="Run the tests on the workspace and say which fail.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the suite; IsolationRefusedError when it is weaker than `require`."""
        return await isolation_of(self.evaluator, "the evaluator", require)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """What the suite says."""
        try:
            candidate = candidate_in(self.workspace, self.candidate_file, self.limit)
        except (GenerationError, ValueError, OSError) as error:
            return failed(error)
        expected = self.expected or self.spec.expected_cases
        verdict = await self.evaluator.evaluate(
            Submission(
                run_id=request.run_id,
                attempt=1,
                candidate=candidate,
                spec=self.spec,
                expected=expected,
                language=self.language,
                seconds=request.seconds,
            )
        )
        rule = Expectation(expected=expected, controls=frozenset(), severity_of=self.spec.severity_of)
        judgement = judge(checked_verdict(verdict, expected), rule)
        passed, failing = len(judgement.passed), judgement.failing
        cases: list[JSON] = [{"id": case.id, "status": str(case.status), "message": case.message} for case in failing]
        lines = [f"{passed} of {passed + len(failing)} cases passed"]
        lines += [f"- {case.id} {case.status}: {excerpt(case.message, 500)}" for case in failing[:SHOWN_CASES]]
        lines += [f"- and {len(failing) - SHOWN_CASES} more"] if len(failing) > SHOWN_CASES else []
        return done("\n".join(lines), {"passed": passed, "total": passed + len(failing), "failing": cases})


def candidate_in(workspace: Workspace, candidate_file: str, limit: int) -> Candidate:
    """The files as a candidate: one of them as a text, or all. GenerationError when there is none."""
    if not candidate_file:
        files = workspace.files(limit)
        if not files:
            raise GenerationError("the workspace holds no file: write the candidate's files")
        return Candidate(files=files)
    try:
        return Candidate(workspace.read(candidate_file))
    except FileNotFoundError:
        raise GenerationError(f"the workspace holds no {candidate_file}: write it") from None
    except (ValueError, OSError) as error:
        raise GenerationError(str(error)) from None

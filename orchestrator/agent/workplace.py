"""An agent's workspace: a directory whose files are reached by relative paths, and nothing beside them.

Every path is taken below the directory and no link is followed on the way, whatever a model asks for and whatever
a command has left there. A file is written beside its place and moved over it, so that a reader never sees half
of one, and a hard link that a command made to some other file keeps that file as it was.
"""

from __future__ import annotations

import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.candidate import Candidate
from orchestrator.excerpt import excerpt
from orchestrator.paths import MOST_FILES, refuse_unsafe_paths
from orchestrator.workspace import UnsafeFileError, read_files, read_regular_file

__all__ = ["FILE_LIMIT", "Workspace", "WorkspacePathError", "candidate_in"]

FILE_LIMIT: Final = 1_000_000
"""Largest file that is read or written unless another limit is given, bytes."""


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
        self.put(relative, data)
        return len(data)

    def put(self, relative: str, data: bytes, mode: int | None = None) -> None:
        """Put bytes in place of a file; WorkspacePathError when something else is in the way."""
        try:
            with self.folder_of(relative) as (folder, name):
                put(folder, name, data, mode)
        except OSError as error:
            raise WorkspacePathError(relative, f"cannot be written ({error.strerror})") from None

    def take(self, archive: bytes) -> tuple[str, ...]:
        """Have the workspace be what a tar stream out of a sandbox holds; what was left out, and why.

        Regular files with plain paths come in; links, devices and what is too large stay out. Files that the stream
        does not have are removed.
        """
        left_out: list[str] = []
        kept: set[str] = set()
        for path, data, mode in members_of(archive):
            try:
                if data is None or len(data) > self.file_limit:
                    raise WorkspacePathError(path, "is no regular file" if data is None else "is too large")
                relative = self.relative(path)
                self.put(relative, data, mode)
                kept.add(relative)
            except ValueError as error:
                left_out.append(str(error).partition(": give a path")[0])
        for path in set(self.paths()) - kept:
            with suppress(OSError, CandidateRefusedError), self.folder_of(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        return tuple(left_out)

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


def members_of(archive: bytes) -> Iterator[tuple[str, bytes | None, int]]:
    """Name, content and mode of what is no directory; None for what is no regular file; ValueError for no archive."""
    import tarfile

    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
            for number, member in enumerate(members):
                if number > 2 * MOST_FILES:
                    raise ValueError("it left too many files")
                is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
                content = members.extractfile(member) if is_plain else None
                if not member.isdir():
                    mode = 0o700 if member.mode & stat.S_IXUSR else 0o600
                    yield member.name.removeprefix("./"), None if content is None else content.read(), mode
    except (tarfile.TarError, EOFError, OverflowError, RecursionError, OSError) as error:
        raise ValueError(f"what it left could not be brought out of the sandbox: {error}") from None


def put(folder: int, name: str, data: bytes, mode: int | None) -> None:
    """Write a file beside its place and move it there; OSError where something else than a file is in the way."""
    with suppress(FileNotFoundError):
        found = os.lstat(name, dir_fd=folder)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(None, "something else than a file is there")
        mode = mode or stat.S_IMODE(found.st_mode)
    mode = mode or 0o600
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

"""A fresh directory in which one program works: candidate files go in, regular files come out."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.paths import MOST_FILES, refuse_unsafe_paths

__all__ = [
    "UnsafeFileError",
    "copy_directory",
    "digests",
    "file_in_archive",
    "fresh_directory",
    "read_archive",
    "read_files",
    "read_regular_file",
    "write_files",
]

_LARGEST_DIGESTED: Final = 64 * 1024 * 1024
"""Size of a file that is read to see whether it changed, bytes."""


class UnsafeFileError(Exception):
    """A file that a program left is no plain file, or too large; the message says which."""


@contextmanager
def fresh_directory() -> Iterator[Path]:
    """A new, empty, private directory, which is removed afterwards with whatever is in it."""
    directory = Path(tempfile.mkdtemp(prefix="orchestrator-")).resolve()
    try:
        yield directory
    finally:
        _remove(directory)


def write_files(files: Mapping[str, str], directory: Path) -> None:
    """Write a candidate's files beside those that are there already, overwriting none.

    Raises CandidateRefusedError before anything is written when a path is unsafe or in use.
    """
    refuse_unsafe_paths(files, _paths_in(directory))
    for path, data in [(path, _encoded(path, text)) for path, text in files.items()]:
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, 0o600), "wb") as file:
            file.write(data)


def copy_directory(source: Path, directory: Path) -> None:
    """Copy a directory, and in place of its links what they point to; the copy may be written to."""
    shutil.copytree(source, directory)
    for folder, _, _ in os.walk(directory):
        os.chmod(folder, stat.S_IRWXU)


def read_files(directory: Path, limit: int) -> dict[str, str]:
    """All files that a generator left in its directory; `limit` is the bytes of all together.

    Raises GenerationError for anything that is not a regular file of UTF-8 text with one name: links,
    devices, pipes and sockets are not followed, opened or skipped.
    """
    return _texts(((path, partial(read_regular_file, directory, path)) for path in _paths_in(directory)), limit)


def read_archive(archive: bytes, limit: int) -> dict[str, str]:
    """`read_files` of what came out of a sandbox as a tar stream, which is not trusted either."""
    return _texts(((path, partial(_plain_content, data, path)) for path, data in _members(archive)), limit)


def file_in_archive(archive: bytes, path: str, limit: int) -> bytes:
    """The bytes of one file of a tar stream.

    Raises FileNotFoundError, or UnsafeFileError for anything but one regular file of at most `limit` bytes.
    """
    found = [data for name, data in _members(archive) if name == path]
    if not found:
        raise FileNotFoundError(path)
    if len(found) > 1:
        raise UnsafeFileError("came out more than once")
    return _plain_content(found[0], path, limit)


def digests(directory: Path) -> dict[str, bytes]:
    """SHA-256 of every file below a directory that can be read, by its relative path; links are not followed."""
    found: dict[str, bytes] = {}
    for path in _paths_in(directory):
        with suppress(OSError, UnsafeFileError):
            found[path] = sha256(read_regular_file(directory, path, _LARGEST_DIGESTED)).digest()
    return found


def read_regular_file(directory: Path, path: str, limit: int) -> bytes:
    """The bytes of a file below `directory`, following no link on the way.

    Raises FileNotFoundError, UnsafeFileError, or OSError when a directory on the way is none or a link.
    """
    *folders, name = PurePosixPath(path).parts
    opened = [os.open(directory, os.O_RDONLY | os.O_DIRECTORY)]
    try:
        for folder in folders:
            opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        return _read_plain(name, opened[-1], limit)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _read_plain(name: str, folder: int, limit: int) -> bytes:
    found = os.lstat(name, dir_fd=folder)
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeFileError("is not a regular file")
    # Between the look and the open a program may have put something else there, hence the flags and fstat.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(name, flags, dir_fd=folder), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFileError("is not a regular file")
        if found.st_nlink != 1:
            raise UnsafeFileError("is a hard link")
        data = file.read(limit + 1) if found.st_size <= limit else b""
    if len(data) > limit or found.st_size > limit:
        raise UnsafeFileError(f"is too large: at most {limit} bytes were left for it")
    return data


def _texts(files: Iterable[tuple[str, Callable[[int], bytes]]], limit: int) -> dict[str, str]:
    """The texts of files, each given with a way to read at most so many bytes of it."""
    texts: dict[str, str] = {}
    room = limit
    for path, read in files:
        if len(texts) == MOST_FILES:
            raise GenerationError(f"the generator left more than {MOST_FILES} files")
        if path in texts:
            raise GenerationError(f"the generator left {path!a} more than once")
        try:
            data = read(room)
            texts[path] = data.decode()
        except UnsafeFileError as error:
            raise GenerationError(f"the generator left {path!a}, which {error}") from None
        except UnicodeDecodeError as error:
            raise GenerationError(f"the generator left {path!a}, which is not UTF-8 at byte {error.start}") from None
        except OSError as error:
            raise GenerationError(f"the generator left {path!a}, which cannot be read: {error.strerror}") from None
        room -= len(data)
    refuse_unsafe_paths(texts)
    return texts


def _members(archive: bytes) -> Iterator[tuple[str, bytes | None]]:
    """Names and contents of what is no directory, in order; None for what is no regular file."""
    import tarfile

    if not archive:
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
            for member in members:
                name = member.name.removeprefix("./")
                is_plain = member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()
                content = members.extractfile(member) if is_plain else None
                if not member.isdir():
                    yield name, None if content is None else content.read()
    except (tarfile.TarError, EOFError, OverflowError, RecursionError, ValueError, OSError) as error:
        raise GenerationError(f"what was left could not be brought out of the sandbox: {error}") from None


def _plain_content(data: bytes | None, path: str, limit: int) -> bytes:  # noqa: ARG001 -- as `read_regular_file`
    if data is None:
        raise UnsafeFileError("is not a regular file")
    if len(data) > limit:
        raise UnsafeFileError(f"is too large: at most {limit} bytes were left for it")
    return data


def _encoded(path: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise CandidateRefusedError(f"{path} holds a lone surrogate at character {error.start}") from None


def _paths_in(directory: Path) -> Iterator[str]:
    """Relative paths of everything below that is no directory, in order; links to directories among them."""
    for folder, folders, names in os.walk(directory):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(set(folders) - set(links))
        for name in sorted([*names, *links]):
            yield os.path.relpath(os.path.join(folder, name), directory)


def _remove(directory: Path) -> None:
    # Programs leave directories without permissions, which their owner must open before removing them.
    with suppress(OSError):
        os.chmod(directory, stat.S_IRWXU)
    for folder, folders, _ in os.walk(directory):
        for name in folders:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, stat.S_IRWXU)
    with suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)

"""Files below one directory: nothing is read or written outside it, no link is followed, and writing is atomic.

Each directory on the way is opened relative to the one before without following links, so what somebody puts in
the place of a directory while this works cannot lead out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import attrs

from orchestrator.plan.errors import RootFileError
from orchestrator.plan.vocabulary import ARTIFACT, is_artifact_name
from orchestrator.workspace import UnsafeFileError, read_regular_file

__all__ = ["LARGEST_FILE", "RootDirectory", "RootFileError"]

LARGEST_FILE: Final = 16_000_000
"""Largest file that is read, unless another limit is given, or written; bytes."""
LONGEST_PATH: Final = 1_000
MEND: Final = "mend that, or name another directory"
NUMBERS = count()
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@attrs.frozen
class RootDirectory:
    """A directory and what is below it; it is made when something is first written. Paths have '/' and no links."""

    root: Path = attrs.field(converter=Path)

    def read(self, path: str, limit: int = LARGEST_FILE) -> bytes | None:
        """The bytes of a regular file; None when there is none.

        Raises RootFileError for a link, for anything else that is no regular file, and for more than `limit` bytes.
        """
        self.refuse(path)
        try:
            return read_regular_file(self.root, path, limit)
        except FileNotFoundError:
            return None
        except UnsafeFileError as error:
            raise RootFileError(self.root, path, str(error)) from None
        except OSError as error:
            raise RootFileError(self.root, path, f"cannot be read: {error.strerror or error}; {MEND}") from None

    def read_text(self, path: str, limit: int = LARGEST_FILE) -> str | None:
        """The text of a UTF-8 file; None when there is none. Raises RootFileError as `read` does."""
        data = self.read(path, limit)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise RootFileError(self.root, path, f"is not UTF-8 at byte {error.start}") from None

    def write(self, path: str, data: bytes) -> None:
        """Put the data into the place of a file, whole or not at all, durably; RootFileError, and it is as it was.

        What is longer than can be read is not written.
        """
        if len(data) > LARGEST_FILE:
            raise RootFileError(self.root, path, f"{len(data)} bytes: at most {LARGEST_FILE} are kept, so split it")
        with self.opened(path) as (folder, name):
            temporary = made(folder, name, data)
            try:
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)

    def create(self, path: str, data: bytes) -> bool:
        """Write a file that is not there, whole or not at all; False, and nothing is written, when it is."""
        with self.opened(path) as (folder, name):
            temporary = made(folder, name, data)
            try:
                os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                return False
            finally:
                os.unlink(temporary, dir_fd=folder)
            os.fsync(folder)
            return True

    def require_writable(self) -> None:
        """Make the directory if need be; RootFileError unless files can be written into it."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            os.close(os.open(self.root, os.O_RDONLY | os.O_DIRECTORY))
            is_writable = os.access(self.root, os.W_OK | os.X_OK)
        except OSError as error:
            raise RootFileError(self.root, "", f"is no directory: {error.strerror or error}; {MEND}") from None
        if not is_writable:
            raise RootFileError(self.root, "", f"cannot be written; {MEND}")

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a directory below the root, in order; none when it is not there."""
        self.refuse(folder)
        opened: list[int] = []
        try:
            descriptor = self.descend(folder.split("/"), opened, is_made=False)
            return tuple(sorted(os.listdir(descriptor)))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RootFileError(self.root, folder, f"cannot be listed: {error.strerror or error}; {MEND}") from None
        finally:
            for each in opened:
                os.close(each)

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[int, str]]:
        """The directory of a file, made if need be, and the file's name; OSErrors become RootFileError."""
        self.refuse(path)
        *folders, name = path.split("/")
        opened: list[int] = []
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            yield self.descend(folders, opened, is_made=True), name
        except OSError as error:
            raise RootFileError(self.root, path, f"cannot be written: {error.strerror or error}; {MEND}") from error
        finally:
            for each in opened:
                os.close(each)

    def descend(self, folders: list[str], opened: list[int], *, is_made: bool) -> int:
        """The descriptor of a directory; all that were opened on the way are added to `opened`."""
        opened.append(os.open(self.root, os.O_RDONLY | os.O_DIRECTORY))
        for folder in folders:
            if is_made:
                with suppress(FileExistsError):
                    os.mkdir(folder, 0o755, dir_fd=opened[-1])
                    os.fsync(opened[-1])
            opened.append(os.open(folder, FOLDER, dir_fd=opened[-1]))
        return opened[-1]

    def refuse(self, path: str) -> None:
        """Raise RootFileError for what is no plain relative path."""
        if not is_artifact_name(path, LONGEST_PATH):
            raise RootFileError(self.root, ascii(path), f"is no path below the root: use {ARTIFACT}")


def made(folder: int, name: str, data: bytes) -> str:
    """The name of a new file with this data, written out, beside where it is to be."""
    temporary = f".{name[:200]}.{os.getpid()}-{next(NUMBERS)}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        descriptor = os.open(temporary, flags, 0o644, dir_fd=folder)
    except FileExistsError:  # left by a process of the same id that was killed
        os.unlink(temporary, dir_fd=folder)
        descriptor = os.open(temporary, flags, 0o644, dir_fd=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise
    return temporary

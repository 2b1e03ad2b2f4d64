"""The state file: written atomically, its previous version kept, nothing of others ever overwritten unasked."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from orchestrator.workflow.statetext import NEW
from orchestrator.workspace import UnsafeFileError, read_regular_file
from orchestrator_events.errors import OrchestratorError

__all__ = ["IdTakenError", "StateFile", "StateFileError"]

SUFFIX: Final = "-state.json"
APART: Final = "+"
"""Between `workflow-new` and a run's id; neither a workflow's id nor a run's may hold it."""
PREVIOUS: Final = ".previous"
LARGEST_READ: Final = 1_000_000
"""Largest file that is read, bytes."""


class StateFileError(OrchestratorError):
    """The state file cannot be read or written; `path` names it."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"{path}: {reason}")


class IdTakenError(StateFileError):
    """The file is there and is another workflow's, whose id this one would take; `text` is what it holds."""

    def __init__(self, path: Path, text: str = "", advice: str = "move the file away") -> None:
        self.text = text
        super().__init__(path, f"is there already: another workflow has this id; {advice}")


@attrs.frozen
class StateFile:
    """Where the state of one workflow lies: `<directory>/<workflow id>-state.json` (contract 4)."""

    directory: Path = attrs.field(converter=Path)
    workflow_id: str | None = None
    """None: the workflow has no id yet, and its file is called `workflow-new-state.json`."""
    run_id: str = ""
    """Set for a workflow without an id beside another one: its run, which its file is named after as well."""

    @classmethod
    def at(cls, path: str) -> StateFile:
        """The file at a path that a record names."""
        name, _, run_id = Path(path).name.removesuffix(SUFFIX).partition(APART)
        return cls(Path(path).parent, None if name == NEW else name, run_id)

    @property
    def path(self) -> Path:
        """The file itself."""
        own = f"{APART}{self.run_id}" if self.run_id else ""
        return self.directory / f"{self.workflow_id or NEW}{own}{SUFFIX}"

    @property
    def previous(self) -> Path:
        """Where the version before is kept."""
        return self.path.with_name(self.path.name + PREVIOUS)

    @property
    def is_there(self) -> bool:
        """Whether anything has this name."""
        return os.path.lexists(self.path)

    def read(self) -> str | None:
        """What the file holds, undecodable bytes as surrogates; None when there is no file.

        Raises StateFileError for what is no regular file, too large, or cannot be read.
        """
        try:
            return read_regular_file(self.directory, self.path.name, LARGEST_READ).decode(errors="surrogateescape")
        except FileNotFoundError:
            return None
        except UnsafeFileError as error:
            raise StateFileError(self.path, str(error)) from None
        except OSError as error:
            raise StateFileError(self.path, f"cannot be read: {error.strerror or error}") from None

    def write(self, text: str) -> None:
        """Make this the file's content: a temporary file, fsync, rename, fsync of the directory.

        What it held before is in `previous` afterwards. A file that holds the text already is left alone. Raises
        StateFileError, and the file is as it was.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            before = self.bytes_before()
            if before == text.encode():
                return
            if before is not None:
                replace(self.previous, before)
            replace(self.path, text.encode())
        except (OSError, UnsafeFileError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StateFileError(self.path, f"cannot be written: {reason}") from error

    def rename(self, workflow_id: str) -> StateFile:
        """The file under the workflow's id, renamed in one step; StateFileError when there is a file of that name."""
        renamed = StateFile(self.directory, workflow_id)
        try:
            if renamed.is_there:
                raise IdTakenError(renamed.path)
            os.rename(self.path, renamed.path)
            if os.path.lexists(self.previous):
                os.replace(self.previous, renamed.previous)
            settle(self.directory)
        except OSError as error:
            raise StateFileError(renamed.path, f"cannot be renamed to: {error.strerror or error}") from error
        return renamed

    def set_aside(self, mark: str) -> None:
        """Have a workflow begin afresh: what is there keeps its content under a name that nothing reads."""
        try:
            if self.is_there:
                os.replace(self.path, self.path.with_name(f"{self.path.name}.{mark}"))
                settle(self.directory)
        except OSError as error:
            raise StateFileError(self.path, f"cannot be set aside: {error.strerror or error}") from error

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others who ask for this from taking a name in the directory meanwhile; it is made if need be.

        Where the file system knows no locks, nobody is kept. Raises StateFileError.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise StateFileError(self.path, f"cannot be written: {error.strerror or error}") from error
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def bytes_before(self) -> bytes | None:
        """What is there now; None when nothing is."""
        try:
            return read_regular_file(self.directory, self.path.name, LARGEST_READ)
        except FileNotFoundError:
            return None


def replace(path: Path, data: bytes) -> None:
    """Put the data into the place of a file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with open(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    settle(path.parent)


def settle(directory: Path) -> None:
    """Have the directory itself written out, so that a rename survives a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Holding a run: one orchestrator works on it at a time, across processes, and a dead process holds nothing.

A lock on one byte of a file beside the journal, at an offset taken from the run's id. The kernel gives it back
when the process ends, however it ends, so there is no lease to expire and none to clean up. Open-file-description
locks are used where the system has them: a plain record lock is dropped as soon as anyone in the process closes
the file.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING

from orchestrator_events.errors import JournalError, RunHeldError

if TYPE_CHECKING:
    from pathlib import Path  # loads more than the rest of this module

__all__ = ["Holds"]

SET_LOCK = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
GET_LOCK = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)
LOCK = "hhqqi4x"
"""The kernel's struct flock."""


class Holds:
    """The runs that one journal object holds; `path` None keeps them within this process."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.runs: set[str] = set()
        self.lock = Lock()

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Hold a run while the block is entered; RunHeldError when someone else does."""
        with self.lock:
            if run_id in self.runs:
                raise held(run_id, "this process")
            self.runs.add(run_id)
        try:
            if self.path is None:
                yield
            else:
                with locked_byte(self.path, run_id):
                    yield
        finally:
            with self.lock:
                self.runs.discard(run_id)

    def is_held(self, run_id: str) -> bool:
        """Whether somebody holds a run; asked without holding it, so that nobody is kept from it."""
        with self.lock:
            if self.path is None or run_id in self.runs:
                return run_id in self.runs
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # without the file, nobody ever held one
            return False
        try:
            found = fcntl.fcntl(file, GET_LOCK, lock_on(run_id))
        except OSError:
            return False
        finally:
            os.close(file)
        return bool(struct.unpack(LOCK, found)[0] != fcntl.F_UNLCK)


def lock_on(run_id: str) -> bytes:
    """The lock of one run, for the kernel."""
    offset = int.from_bytes(sha256(run_id.encode()).digest()[:7], "big")
    return struct.pack(LOCK, fcntl.F_WRLCK, os.SEEK_SET, offset, 1, 0)


@contextmanager
def locked_byte(path: Path, run_id: str) -> Iterator[None]:
    """The lock of one run, in the file beside the journal."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JournalError(f"{path}: run {run_id} cannot be held: {error}", run_id=run_id) from error
    try:
        try:
            fcntl.fcntl(file, SET_LOCK, lock_on(run_id))
        except OSError as error:
            raise held(run_id, "another process") from error
        yield
    finally:
        os.close(file)


def held(run_id: str, holder: str) -> RunHeldError:
    """The refusal in words."""
    return RunHeldError(f"run {run_id} is held by {holder}: wait for it or end it", run_id=run_id)

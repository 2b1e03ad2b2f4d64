"""Control groups: one for each start, which bounds all of its processes together and is gone when they are.

A process enters by writing to a descriptor that it was handed, before it starts anything: so nothing that is started
is ever outside. Names say which process made a group; what engines left that were killed is swept by the next one.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from orchestrator.sandbox.delegation import MEMORY, PROCESSES, Ground, grounds
from orchestrator.sandbox.limits import size
from orchestrator.sandbox.port import Limits

__all__ = ["Group", "Groups", "usable_groups"]

_NAME: Final = re.compile(r"orchestrator-(?P<space>\d+)-(?P<process>\d+)-(?P<began>\d+)-[0-9a-f]{32}")
_REMOVED_WITHIN_S: Final = 2.0
"""How long a group is emptied and removed in the background, seconds; this may hold up the end of the host."""
_PAUSE_S: Final = 0.002
_HITS: Final = ("memory.failcnt", "memory.memsw.failcnt")
"""Where version 1 counts how often a limit was hit."""
_TRIAL: Final = Limits(processes=8, memory_total_bytes=64 * 1024 * 1024)


@attrs.frozen(kw_only=True)
class Groups:
    """Makes groups where that may be done."""

    memory: Ground | None = None
    processes: Ground | None = None
    make: Callable[[Path], None] = os.mkdir
    remove: Callable[[Path], None] = os.rmdir

    @property
    def label(self) -> str:
        """`control group v1`, with what it is for when that is not both memory and processes."""
        used = [ground for ground in (self.memory, self.processes) if ground is not None]
        versions = " and ".join(sorted({f"v{ground.version}" for ground in used}))
        part = " for processes" if self.memory is None else " for memory" if self.processes is None else ""
        return f"control group {versions}{part}"

    @contextmanager
    def opened(self, limits: Limits) -> Iterator[Group]:
        """A group with these limits for all processes in it together; with the context they and it are gone.

        Raises OSError when it cannot be made.
        """
        name = _new_name()
        used = {ground.directory: ground for ground in (self.memory, self.processes) if ground is not None}
        with ExitStack() as stack:
            for directory in used:
                self.make(directory / name)
                stack.callback(self._discard, directory / name)
            if self.memory is not None and limits.memory_total_bytes is not None:
                _limit_memory(self.memory.version, self.memory.directory / name, limits.memory_total_bytes)
            if self.processes is not None and limits.processes is not None:
                _write(self.processes.directory / name / "pids.max", limits.processes)
            doors = []
            for directory in used:
                doors.append(os.open(directory / name / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
                stack.callback(os.close, doors[-1])
            counted = None if self.memory is None else self.memory.directory / name
            yield Group(doors=tuple(doors), memory=counted, memory_bytes=limits.memory_total_bytes)

    def sweep(self) -> None:
        """Remove the groups that this user's engines left here and that no longer run."""
        for directory in {ground.directory for ground in (self.memory, self.processes) if ground is not None}:
            with suppress(OSError), os.scandir(directory) as entries:
                for entry in entries:
                    if _is_left_over(entry):
                        self._discard(Path(entry.path))

    def _discard(self, folder: Path) -> None:
        if self._is_removed(folder):
            return
        _kill_members(folder)
        if self._is_removed(folder):
            return
        try:
            # the host's loop is not held up, and the host waits for it when it ends, so that nothing is left
            threading.Thread(target=self._persist, args=(folder,), name="orchestrator-group").start()
        except RuntimeError:  # no thread can be had, as at the exit of the interpreter
            self._persist(folder)

    def _persist(self, folder: Path) -> None:
        until = time.monotonic() + _REMOVED_WITHIN_S
        while not self._is_removed(folder) and time.monotonic() < until:
            _kill_members(folder)
            time.sleep(_PAUSE_S)

    def _is_removed(self, folder: Path) -> bool:
        try:
            self.remove(folder)
        except FileNotFoundError:
            return True
        except OSError:  # EBUSY: somebody is in it, dying perhaps
            return False
        return True


@attrs.frozen(kw_only=True)
class Group:
    """One group of processes."""

    doors: tuple[int, ...]
    """Descriptors; a process that writes 0 to each is in the group, with all that it starts from then on."""
    memory: Path | None
    memory_bytes: int | None

    def overuse(self) -> str:
        """What its processes were killed for, in words; empty when it was not for the limit of the group."""
        if self.memory is None or self.memory_bytes is None:
            return ""
        # a kill counts here too when a group above or the machine ran out: the limit itself must have been hit
        # (version 1 counts on the limit that swap has a part in where there is one, which is charged first)
        was_hit = _counter(self.memory / "memory.events", "oom") or any(map(_counter, map(self.memory.joinpath, _HITS)))
        kills = _counter(self.memory / "memory.events", "oom_kill")
        kills += _counter(self.memory / "memory.oom_control", "oom_kill")
        return f"used more than {size(self.memory_bytes)} of memory together" if was_hit and kills else ""


def usable_groups(proc: Path = Path("/proc/self")) -> Groups | None:
    """What was found to work here, by making a group and removing it again; None when nothing does.

    What killed engines left is removed on the way.
    """
    found: dict[str, Ground] = {}
    for ground in grounds(proc):
        for controller in ground.controllers:
            if controller not in found and _works(_groups({controller: ground})):
                found[controller] = ground
    if not found:
        return None
    groups = _groups(found)
    groups.sweep()
    return groups


def _groups(found: dict[str, Ground]) -> Groups:
    return Groups(memory=found.get(MEMORY), processes=found.get(PROCESSES))


def _works(groups: Groups) -> bool:
    try:
        with groups.opened(_TRIAL):
            return True
    except OSError:
        return False


def _limit_memory(version: int, folder: Path, count: int) -> None:
    if version == 1:
        _write(folder / "memory.limit_in_bytes", count)
        with suppress(FileNotFoundError):  # a kernel that does not count what is swapped out
            _write(folder / "memory.memsw.limit_in_bytes", count)
        return
    _write(folder / "memory.max", count)
    for file, value in (("memory.swap.max", 0), ("memory.oom.group", 1)):
        with suppress(FileNotFoundError):  # a kernel without swap, or before 4.19
            _write(folder / file, value)


def _write(file: Path, value: int) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, b"%d" % value)
    finally:
        os.close(descriptor)


def _counter(file: Path, name: str = "") -> int:
    """A number in a file of the kernel, by its name where it has one; 0 when there is none."""
    with suppress(OSError, ValueError):
        for line in file.read_text().splitlines():
            key, _, value = line.rpartition(" ")
            if key == name:
                return int(value)
    return 0


def _kill_members(folder: Path) -> None:
    try:
        _write(folder / "cgroup.kill", 1)
    except OSError:  # version 1, or a kernel before 5.14
        with suppress(OSError):
            _write(folder / "pids.max", 0)  # so that nothing is started while the list is read
        for process in _members(folder):
            _kill_member(folder, process)


def _kill_member(folder: Path, process: int) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(process)
        try:
            if process in _members(folder):  # the id might be a stranger's by now, the handle cannot become one's
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _members(folder: Path) -> list[int]:
    """Ids of the processes in it; those that this process cannot see are told as 0."""
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split() if line != "0"]
    except (OSError, ValueError):
        return []


def _new_name() -> str:
    process = os.getpid()
    return f"orchestrator-{_process_space()}-{process}-{_began(process)}-{secrets.token_hex(16)}"


def _is_left_over(entry: os.DirEntry[str]) -> bool:
    found = _NAME.fullmatch(entry.name)
    if found is None or int(found["space"]) != _process_space():
        return False
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return False
    return _began(int(found["process"])) != int(found["began"])


def _process_space() -> int:
    """What process ids are counted in; the same number is another process elsewhere."""
    return os.stat("/proc/self/ns/pid").st_ino


def _began(process: int) -> int:
    """When a process was started, in ticks since the machine was; -1 when there is none."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return int(text.rpartition(")")[2].split()[19])

"""Where control groups may be made: below a group that was handed over to us, and nowhere else.

That root can write everywhere says nothing: a group that a supervisor put us into is the supervisor's, which counts
and ends what is in it. Handed over is what we see as the top of a hierarchy, what carries the mark that systemd sets
for `Delegate=yes`, and for other users than root a directory that is their own (see the kernel's cgroup-v2.rst,
"Delegation", and systemd's CGROUP_DELEGATION.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import attrs

__all__ = ["MEMORY", "PROCESSES", "Ground", "grounds"]

MEMORY: Final = "memory"
PROCESSES: Final = "pids"
"""The kernel's names of the controllers that are used."""
_UNIFIED: Final = ""
"""What the hierarchy of version 2 has for the name of a controller."""
_MARKS: Final = ("trusted.delegate", "user.delegate")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


@attrs.frozen(kw_only=True)
class Ground:
    """A directory in which groups may be made, and what is held in them."""

    version: int
    """Of control groups: 1 or 2."""
    directory: Path
    controllers: tuple[str, ...]


@attrs.frozen
class _Seat:
    """A group, as a directory; `is_top` when nothing above it can be seen."""

    directory: Path
    is_top: bool


def grounds(proc: Path = Path("/proc/self")) -> tuple[Ground, ...]:
    """Where this process may make groups, version 2 first; nothing is tried here but the switch of version 2.

    A process in a group of version 2 makes that group useless as a parent, unless it is the machine's own; so
    the parent serves as well when it is marked: `systemd-run -p Delegate=yes -p DelegateSubgroup=engine …`.
    """
    try:
        seats = _seats((proc / "cgroup").read_text(), (proc / "mountinfo").read_text())
    except (OSError, ValueError):
        return ()
    return (*_of_version_2(seats), *_of_version_1(seats))


def _of_version_2(seats: dict[str, _Seat]) -> Iterator[Ground]:
    seat = seats.get(_UNIFIED)
    if seat is None:
        return
    parents = (seat.directory.parent,) if not seat.is_top and _is_marked(seat.directory.parent) else ()
    for directory in (*((seat.directory,) if _is_handed_over(seat) else ()), *parents):
        controllers = _switched_on(directory)
        if controllers and os.access(directory, os.W_OK):
            yield Ground(version=2, directory=directory, controllers=controllers)
            return


def _of_version_1(seats: dict[str, _Seat]) -> Iterator[Ground]:
    for controller in (MEMORY, PROCESSES):
        seat = seats.get(controller)
        if seat is not None and _is_handed_over(seat) and os.access(seat.directory, os.W_OK):
            yield Ground(version=1, directory=seat.directory, controllers=(controller,))


def _is_handed_over(seat: _Seat) -> bool:
    try:
        is_own = os.geteuid() != 0 and os.stat(seat.directory).st_uid == os.geteuid()
    except OSError:
        return False
    return seat.is_top or is_own or _is_marked(seat.directory)


def _is_marked(directory: Path) -> bool:
    for mark in _MARKS:
        with suppress(OSError):
            if os.getxattr(directory, mark) == b"1":
                return True
    return False


def _switched_on(directory: Path) -> tuple[str, ...]:
    """The controllers that groups in a directory of version 2 have, after those that were off were asked for."""
    switch = directory / "cgroup.subtree_control"
    try:
        wanted = {MEMORY, PROCESSES} & set((directory / "cgroup.controllers").read_text().split())
        for controller in sorted(wanted - set(switch.read_text().split())):
            with suppress(OSError):  # EBUSY: a process is in the group itself
                _written(switch, f"+{controller}")
        return tuple(sorted(wanted & set(switch.read_text().split())))
    except OSError:
        return ()


def _written(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _seats(cgroup: str, mountinfo: str) -> dict[str, _Seat]:
    """Our own group in each hierarchy, by the controllers of that hierarchy."""
    mounts = dict(_mounts(mountinfo))
    seats = {}
    for line in cgroup.splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            root, point = mounts.get(name, ("", ""))
            if root and (path == root or path.startswith(f"{root.rstrip('/')}/")):
                below = os.path.relpath(path, root)
                seats[name] = _Seat(Path(point) / below, is_top=below == ".")
    return seats


def _mounts(mountinfo: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """The root and the mount point of the hierarchy of each controller; later mounts cover earlier ones."""
    for line in mountinfo.splitlines():
        front, _, back = line.partition(" - ")
        kind, _, options = back.split(" ", 2)
        root, point = (_ESCAPED.sub(lambda found: chr(int(found[1], 8)), word) for word in front.split(" ")[3:5])
        if kind == "cgroup2":
            yield _UNIFIED, (root, point)
        elif kind == "cgroup":
            for name in options.split(","):
                yield name, (root, point)

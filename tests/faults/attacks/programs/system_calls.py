"""A8, what the kernel offers beside: each attack is true when it succeeded. None outlasts its process."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LIBRARY = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "add_key": 248, "unshare": 272, "clone": 56},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "add_key": 217, "unshare": 97, "clone": 220},
}.get(platform.machine(), {})
IO_URING_SETUP, CLONE3, OPEN_TREE, SETNS = 425, 435, 428, {"x86_64": 308, "aarch64": 268}.get(platform.machine(), 0)
NEW_USER, NEW_FILES, SIGCHLD = 0x10000000, 0x00020000, 17
PTRACE_SEIZE, PROCESS_KEYRING = 0x4206, -2
TAKE_TERMINAL, TYPE_INTO_TERMINAL = 0x540E, 0x5412
PRIVATE_RECURSIVE = (1 << 18) | (1 << 14)


def system(number: int, *arguments: Any) -> int:
    """A system call; numbers fill a register or a place on the stack, whose upper half is undefined otherwise."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(LIBRARY.syscall(ctypes.c_long(number), *wide))


def in_child(act: Callable[[], bool]) -> bool:
    """Whether something succeeded in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if act() else 1)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def key(settings: dict[str, Any]) -> bool:
    """Put a key into a keyring of this process alone."""
    number = NUMBERS["add_key"]
    return in_child(lambda: system(number, b"user", settings["token"].encode(), b"x", 1, PROCESS_KEYRING) >= 0)


def ring(_: dict[str, Any]) -> bool:
    """Set up an io_uring."""
    return in_child(lambda: system(IO_URING_SETUP, 1, ctypes.create_string_buffer(120)) >= 0)


def unshared(_: dict[str, Any]) -> bool:
    """Be root in a user namespace of one's own."""
    return in_child(lambda: system(NUMBERS["unshare"], NEW_USER) == 0)


def cloned(_: dict[str, Any]) -> bool:
    """Start a process in a user namespace of its own."""
    return started_child(system(NUMBERS["clone"], NEW_USER | SIGCHLD, 0, 0, 0, 0))


def cloned_by_structure(_: dict[str, Any]) -> bool:
    """Start one with clone3, whose flags a filter cannot see."""
    arguments = (ctypes.c_uint64 * 8)(NEW_USER, 0, 0, 0, SIGCHLD, 0, 0, 0)
    return started_child(system(CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments)))


def started_child(process: int) -> bool:
    """End what was started; whether it was."""
    if process == 0:
        os._exit(0)
    if process > 0:
        os.waitpid(process, 0)
    return process > 0


def mounted(settings: dict[str, Any]) -> bool:
    """Mount something, in a mount namespace that is not the host's."""

    def mount() -> bool:
        system(NUMBERS["unshare"], NEW_USER | NEW_FILES)
        if os.readlink("/proc/self/ns/mnt") == settings["mount_namespace"]:
            system(NUMBERS["unshare"], NEW_FILES)
        if os.readlink("/proc/self/ns/mnt") == settings["mount_namespace"]:
            return False
        LIBRARY.mount(b"none", b"/", None, PRIVATE_RECURSIVE, None)
        return bool(LIBRARY.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0)

    return in_child(mount)


def entered(_: dict[str, Any]) -> bool:
    """Enter a mount namespace by its file."""

    def enter() -> bool:
        namespace = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        return system(SETNS, namespace, 0) == 0

    return in_child(enter)


def taken_tree(_: dict[str, Any]) -> bool:
    """Copy a mount by its descriptor."""
    return in_child(lambda: system(OPEN_TREE, -100, b"/tmp", 1) >= 0)


def traced_child(_: dict[str, Any]) -> bool:
    """Trace a process of one's own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    is_traced = system(NUMBERS["ptrace"], PTRACE_SEIZE, child, 0, 0) == 0
    os.close(writing)
    os.waitpid(child, 0)
    return is_traced


def typed(settings: dict[str, Any]) -> bool:
    """Type into a terminal that was left open."""

    def type_into() -> bool:
        with suppress(PermissionError):  # it leads its session already
            os.setsid()
        fcntl.ioctl(settings["terminal"], TAKE_TERMINAL, 0)
        fcntl.ioctl(settings["terminal"], TYPE_INTO_TERMINAL, b"x")
        return True

    return in_child(type_into)


ATTACKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "keyctl": key,
    "io_uring": ring,
    "nested user namespace": unshared,
    "nested user namespace by clone": cloned,
    "nested user namespace by clone3": cloned_by_structure,
    "mount": mounted,
    "setns": entered,
    "open_tree": taken_tree,
    "ptrace": traced_child,
    "TIOCSTI": typed,
}

"""A8, what others have: their secrets, their memory, their lives. Each attack is true when it succeeded."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Callable, Iterator
from typing import Any

LIBRARY = ctypes.CDLL(None, use_errno=True)
NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "pidfd_getfd": 438},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "pidfd_getfd": 438},
}.get(platform.machine(), {})
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
OWN_PROCESSES = 64
"""Up to here an id may be that of a process inside."""


class Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def system(number: int, *arguments: Any) -> int:
    """A system call; numbers fill a register or a place on the stack, whose upper half is undefined otherwise."""
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(LIBRARY.syscall(ctypes.c_long(number), *wide))


def strangers(settings: dict[str, Any]) -> Iterator[object]:
    """All processes but this one; of the host's, those that are the test's own."""
    if os.readlink("/proc/self/ns/pid") == settings["namespace"]:
        return iter((settings["engine"], settings["victim"]))
    return (name for name in os.listdir("/proc") if name.isdecimal() and name != str(os.getpid()))


def address(process: object) -> int:
    """Where some memory of a process begins."""
    with open(f"/proc/{process}/maps") as maps:
        for line in maps:
            place, rights, *_ = line.split()
            if rights.startswith("r"):
                return int(place.split("-")[0], 16)
    raise OSError


def own_environment(settings: dict[str, Any]) -> bool:
    """The engine's variables were handed on."""
    return settings["variable"] in os.environ


def environments(settings: dict[str, Any]) -> bool:
    """A process that can be seen has the variable."""
    for process in strangers(settings):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                if f"{settings['variable']}=".encode() in file.read():
                    return True
        except OSError:
            pass
    return False


def engine_memory(settings: dict[str, Any]) -> bool:
    """Read the engine's memory by its file."""
    with open(f"/proc/{settings['engine']}/mem", "rb", 0) as file:
        file.seek(address(settings["engine"]))
        return len(file.read(16)) == 16


def engine_memory_by_call(settings: dict[str, Any]) -> bool:
    """Read the engine's memory by process_vm_readv."""
    buffer = ctypes.create_string_buffer(16)
    here = Vector(ctypes.addressof(buffer), 16)
    there = Vector(address(settings["engine"]), 16)
    number = NUMBERS["process_vm_readv"]
    return system(number, settings["engine"], ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 16


def traced_victim(settings: dict[str, Any]) -> bool:
    """Attach to a process of the same user."""
    if system(NUMBERS["ptrace"], PTRACE_SEIZE, settings["victim"], 0, 0) != 0:
        return False
    system(NUMBERS["ptrace"], PTRACE_DETACH, settings["victim"], 0, 0)
    return True


def stolen_descriptor(settings: dict[str, Any]) -> bool:
    """Take a descriptor out of another process."""
    victim = os.pidfd_open(settings["victim"])
    return system(NUMBERS["pidfd_getfd"], victim, 0, 0) >= 0


def secret_file(settings: dict[str, Any]) -> bool:
    """Read a file of the user."""
    with open(settings["secret"], "rb") as file:
        return bool(file.read())


def secret_by_root(settings: dict[str, Any]) -> bool:
    """Read it through the root directory of a process."""
    with open(f"/proc/{settings['engine']}/root{settings['secret']}", "rb") as file:
        return bool(file.read())


def signalled_engine(settings: dict[str, Any]) -> bool:
    """Reach the engine with a signal, with one that harms nobody."""
    if settings["engine"] <= OWN_PROCESSES:
        return False
    os.kill(settings["engine"], 0)
    return True


def signalled_victim(settings: dict[str, Any]) -> bool:
    """End a process of the same user; whether it did is seen from outside."""
    if settings["victim"] > OWN_PROCESSES:
        os.kill(settings["victim"], signal.SIGTERM)
    return False


ATTACKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "own environment": own_environment,
    "environment of a process": environments,
    "memory of the engine": engine_memory,
    "memory of the engine by call": engine_memory_by_call,
    "tracing a process": traced_victim,
    "descriptor of a process": stolen_descriptor,
    "secret file": secret_file,
    "secret file by /proc": secret_by_root,
    "signal to the engine": signalled_engine,
    "signal to a process": signalled_victim,
}

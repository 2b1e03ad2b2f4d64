"""The system calls that a sandboxed program is refused, as a filter program for the kernel.

The filter is put together here rather than by a library, so that nothing has to be installed: classic BPF, eight
bytes an instruction, for x86-64 and 64-bit ARM (seccomp(2), linux/filter.h; the numbers: asm/unistd.h).
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

__all__ = ["REFUSED", "filter_program"]

REFUSED: Final = "keyctl, io_uring, ptrace, process_vm, bpf, mount, userfaultfd, perf_event_open, user namespaces"
"""What the filter refuses, in short."""

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in struct seccomp_data."""

_NEW_USER: Final = 0x10000000
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into the terminal."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16

_EVERYWHERE: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
    "quotactl_fd": 443,
}  # fmt: skip


@attrs.frozen(kw_only=True)
class _Architecture:
    """The numbers of one machine."""

    audit: int
    """AUDIT_ARCH of linux/audit.h."""
    ioctl: int
    socket: int
    clone: int
    foreign: int | None = None
    """Numbers from here on belong to another ABI of the same machine."""
    denied: Mapping[str, int]


_ARCHITECTURES: Final[Mapping[str, _Architecture]] = MappingProxyType({
    "x86_64": _Architecture(
        audit=0xC000003E, ioctl=16, socket=41, clone=56, foreign=0x40000000,
        denied={
            "ptrace": 101, "syslog": 103, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "adjtimex": 159,
            "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167,
            "swapoff": 168, "reboot": 169, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
            "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227, "kexec_load": 246,
            "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298,
            "fanotify_init": 300, "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308,
            "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
            "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, **_EVERYWHERE,
        },
    ),
    "aarch64": _Architecture(
        audit=0xC00000B7, ioctl=29, socket=198, clone=220,
        denied={
            "lookup_dcookie": 18, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51,
            "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
            "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142,
            "settimeofday": 170, "adjtimex": 171, "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224,
            "swapoff": 225, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265,
            "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
            "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_EVERYWHERE,
        },
    ),
})  # fmt: skip
_CLONE3: Final = 435
"""Its flags lie in memory, where a filter cannot look: refused as unknown, so that C libraries fall back to clone."""


def filter_program(*, network: bool, machine: str = "") -> bytes | None:
    """The filter for this machine (or another one by its name in uname); None where its numbers are not known.

    Without network only local and IP sockets can be made, which lead nowhere; with it netlink as well.
    """
    numbers = _ARCHITECTURES.get(machine or platform.machine())
    return None if numbers is None else b"".join(_instructions(numbers, network=network))


def _instructions(numbers: _Architecture, *, network: bool) -> Iterable[bytes]:
    # A program of another ABI has other numbers: nothing it calls is known here, so nothing is allowed.
    yield _instruction(_LOAD, _ARCHITECTURE)
    yield _instruction(_JUMP_EQUAL, numbers.audit, yes=1)
    yield _refusal(errno.ENOSYS)
    yield _instruction(_LOAD, _NUMBER)
    if numbers.foreign is not None:
        yield from (_instruction(_JUMP_ABOVE, numbers.foreign, no=1), _refusal(errno.ENOSYS))
    yield from (_instruction(_JUMP_EQUAL, _CLONE3, no=1), _refusal(errno.ENOSYS))
    for number in sorted(numbers.denied.values()):
        yield from (_instruction(_JUMP_EQUAL, number, no=1), _refusal(errno.EPERM))
    yield from _when(numbers.clone, 0, [_instruction(_JUMP_ANY, _NEW_USER, no=1), _refusal(errno.EPERM)])
    typing = [_instruction(_JUMP_EQUAL, request, no=1) + _refusal(errno.EPERM) for request in _TERMINAL_INPUT]
    yield from _when(numbers.ioctl, 1, typing)
    families = (_UNIX, _INET, _INET6, *((_NETLINK,) if network else ()))
    allowed = [_instruction(_JUMP_EQUAL, family, no=1) + _instruction(_RETURN, _ALLOW) for family in families]
    yield from _when(numbers.socket, 0, [*allowed, _refusal(errno.EAFNOSUPPORT)])
    yield _instruction(_RETURN, _ALLOW)


def _when(number: int, argument: int, then: Iterable[bytes]) -> Iterable[bytes]:
    """Instructions about one argument (its lower half: both machines are little-endian) of one system call."""
    looked = b"".join([_instruction(_LOAD, _ARGUMENTS + 8 * argument), *then, _instruction(_RETURN, _ALLOW)])
    yield _instruction(_JUMP_EQUAL, number, no=len(looked) // 8)
    yield looked


def _refusal(number: int) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; `yes` and `no` are how many of the next ones a jump skips."""
    return struct.pack("=HBBI", code, yes, no, value)

"""What the filter of system calls promises."""

from __future__ import annotations

import errno
import platform
import struct
import sys
from collections.abc import Callable

import pytest

from orchestrator.process import Completed
from orchestrator.sandbox.port import EVAL, GENERATOR
from orchestrator.sandbox.seccomp import filter_program

Run = Callable[..., Completed]

ALLOWED = 0x7FFF0000
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the filter says of one system call: an errno, or 0 when it is allowed; run as the kernel runs it."""
    values = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *values)
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    loaded, at = 0, 0
    while True:
        code, yes, no, value = instructions[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return 0 if value == ALLOWED else value & 0xFFFF
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += yes if holds else no


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "arguments", "expected"),
    [
        ("x86_64", X86, 0, (), 0),  # read
        ("x86_64", X86, 101, (), errno.EPERM),  # ptrace
        ("x86_64", X86, 165, (), errno.EPERM),  # mount
        ("x86_64", X86, 250, (), errno.EPERM),  # keyctl
        ("x86_64", X86, 425, (), errno.EPERM),  # io_uring_setup
        ("x86_64", X86, 435, (), errno.ENOSYS),  # clone3
        ("x86_64", X86, 56, (0x11,), 0),  # clone
        ("x86_64", X86, 56, (0x10000011,), errno.EPERM),  # clone into a new user namespace
        ("x86_64", X86, 16, (0, 0x5412), errno.EPERM),  # ioctl TIOCSTI
        ("x86_64", X86, 16, (0, 0x5401), 0),  # ioctl TCGETS
        ("x86_64", X86, 16, (0, 0x1_0000_5412), errno.EPERM),  # the kernel looks at the lower half alone
        ("x86_64", X86, 41, (1,), 0),  # socket AF_UNIX
        ("x86_64", X86, 41, (2,), 0),
        ("x86_64", X86, 41, (16,), errno.EAFNOSUPPORT),  # AF_NETLINK
        ("x86_64", X86, 41, (40,), errno.EAFNOSUPPORT),  # AF_VSOCK
        ("x86_64", X86, 0x40000000, (), errno.ENOSYS),  # read of the x32 ABI
        ("x86_64", 0x40000003, 26, (), errno.ENOSYS),  # ptrace of a 32-bit program
        ("aarch64", ARM, 63, (), 0),  # read
        ("aarch64", ARM, 117, (), errno.EPERM),  # ptrace
        ("aarch64", ARM, 40, (), errno.EPERM),  # mount
        ("aarch64", ARM, 220, (0x10000011,), errno.EPERM),  # clone
        ("aarch64", ARM, 198, (40,), errno.EAFNOSUPPORT),  # socket
        ("aarch64", ARM, 29, (0, 0x5412), errno.EPERM),  # ioctl
        ("aarch64", X86, 63, (), errno.ENOSYS),
    ],
)
def test_calls_are_refused_by_number_and_argument(
    machine: str, architecture: int, number: int, arguments: tuple[int, ...], expected: int
) -> None:
    """For both machines, with foreign ABIs refused altogether."""
    program = filter_program(network=False, machine=machine)
    assert program is not None
    assert verdict(program, architecture, number, *arguments) == expected


def test_netlink_goes_with_the_network() -> None:
    """C libraries ask it for addresses; virtual sockets stay closed."""
    program = filter_program(network=True, machine="x86_64")
    assert program is not None
    found = [verdict(program, X86, 41, family) for family in (16, 40, 38)]
    assert found == [0, errno.EAFNOSUPPORT, errno.EAFNOSUPPORT]


def test_an_unknown_machine_has_no_filter() -> None:
    """Numbers are never guessed."""
    assert filter_program(network=False, machine="riscv64") is None


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers below are those of x86-64")
@pytest.mark.parametrize("profile", [EVAL, GENERATOR], ids=lambda profile: profile.name)
def test_the_kernel_holds_it(run: Run, profile: object) -> None:
    """Inside, the calls fail as they should, and threads and processes start."""
    program = (
        "import ctypes, errno, subprocess, threading\n"
        "system = ctypes.CDLL(None, use_errno=True).syscall\n"
        "calls = [(250, 0, 0), (425, 1, 0), (101, 0, 0), (310, 1, 0), (272, 0x10000000, 0), (41, 40, 1), (323, 0, 0)]\n"
        "print([errno.errorcode[ctypes.get_errno()] if system(*call) < 0 else 'allowed' for call in calls])\n"
        "thread = threading.Thread(target=subprocess.run, args=(['true'],)); thread.start(); thread.join()"
    )
    completed = run([sys.executable, "-c", program], profile)
    expected = ["EPERM"] * 5 + ["EAFNOSUPPORT", "EPERM"]
    assert (completed.stdout.decode().strip(), completed.stderr) == (repr(expected), b"")

"""Small hostile actions, run inside a sandbox to see what it holds; what became of them is judged from outside.

Its text is run by a bare interpreter, so it imports nothing but what is built in. Each thing that succeeded is
told on the report pipe by its name; silence is a denial.
"""

from __future__ import annotations

import os
import signal
import time

SURVIVAL_S = 0.5
"""How long the process that tries to outlive the sandbox stays, seconds."""
OWN_PROCESSES = 64
"""Up to here an id may be that of a process inside."""


def attempt(settings: dict[str, object]) -> None:
    """Try everything, the most disturbing last."""
    report = settings["report"]
    assert isinstance(report, int)
    os.write(report, b"started\n")
    reach(settings)
    for name, act in (
        ("outside write", write_outside),
        ("secret file", read_secret),
        ("secret variable", read_variables),
        ("host signal", signal_host),
        ("survival", outlive),
        ("forks", fork_beyond),
    ):
        try:
            succeeded = act(settings)
        except OSError:
            succeeded = False
        if succeeded:
            os.write(report, name.encode() + b"\n")
    os.write(report, b"ended\n")


def attempt_memory(settings: dict[str, object]) -> None:
    """Use too much memory together; apart from the rest, as it may end all that runs here."""
    report = settings["report"]
    assert isinstance(report, int)
    os.write(report, b"started\n")
    if fill_together(settings):
        os.write(report, b"memory in all\n")


def reach(settings: dict[str, object]) -> None:
    """Send a byte to each listener of the host; the host sees what arrives."""
    import _socket

    local = _socket.AF_UNIX
    for family, kind, address in (
        (_socket.AF_INET, _socket.SOCK_STREAM, ("127.0.0.1", settings["tcp"])),
        (_socket.AF_INET, _socket.SOCK_DGRAM, ("127.0.0.1", settings["udp"])),
        (local, _socket.SOCK_STREAM, settings["abstract"]),
        (local, _socket.SOCK_STREAM, settings["path"]),
    ):
        try:
            channel = _socket.socket(family, kind)
            channel.settimeout(0.05)
            channel.connect(address)  # type: ignore[arg-type] # plain values, written by the host
            channel.send(b"x")
        except OSError:
            pass


def write_outside(settings: dict[str, object]) -> bool:
    """Leave a file in a directory of the host; whether it is there is seen from outside."""
    os.close(os.open(str(settings["outside"]), os.O_WRONLY | os.O_CREAT, 0o666))
    return False


def read_secret(settings: dict[str, object]) -> bool:
    """Read a file of the host's user."""
    with open(str(settings["secret"]), "rb") as file:
        return bool(file.read())


def read_variables(settings: dict[str, object]) -> bool:
    """Look for a variable in the environment of every process that can be seen."""
    wanted = str(settings["canary"]).encode()
    for process in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                if wanted in file.read():
                    return True
        except OSError:
            pass
    return False


def signal_host(settings: dict[str, object]) -> bool:
    """Signal a process of the host by its id; whether it died is seen from outside."""
    process = settings["process"]
    assert isinstance(process, int)
    if process > OWN_PROCESSES:
        os.kill(process, signal.SIGTERM)
    return False


def outlive(settings: dict[str, object]) -> bool:
    """Leave a daemon, with nothing open but a pipe to the host."""
    survival = settings["survival"]
    assert isinstance(survival, int)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.dup2(survival, 3)
            os.closerange(4, 256)
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(SURVIVAL_S)
        os._exit(0)
    return False


def fork_beyond(settings: dict[str, object]) -> bool:
    """Have more processes than the limit allows."""
    wanted = settings["processes"]
    assert isinstance(wanted, int)
    children: list[int] = []
    try:
        while len(children) < wanted:
            child = os.fork()
            if child == 0:
                time.sleep(SURVIVAL_S)
                os._exit(0)
            children.append(child)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return True


def fill_together(settings: dict[str, object]) -> bool:
    """Hold memory in two processes, of which each takes less than is allowed for all."""
    size = settings["memory"]
    assert isinstance(size, int)
    full, tell = os.pipe()
    wait, release = os.pipe()
    count = 2
    for _ in range(count):
        if os.fork() == 0:
            os.close(release)
            os.close(full)
            held = bytearray(size)
            held[::4096] = b"x" * len(held[::4096])
            os.write(tell, b"x")
            os.close(tell)  # else the end of the other would not show
            os.read(wait, 1)
            os._exit(0)
    os.close(tell)
    return sum(len(os.read(full, 1)) for _ in range(count)) == count

"""A8: secrets of the engine and of its user, signals to them, and what else the kernel offers."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Unconfined = Callable[..., set[str]]

VARIABLE = "ORCHESTRATOR_CANARY"
SECRETS = "secrets in files and in other processes of the user"
SIGNALS = "signals to other processes of the user"
CALLS = "system calls"
WEAKNESSES = {
    "own environment": "nothing may hand it on",
    "environment of a process": SECRETS,
    "memory of the engine": SECRETS,
    "memory of the engine by call": SECRETS,
    "tracing a process": SECRETS,
    "descriptor of a process": SECRETS,
    "secret file": SECRETS,
    "secret file by /proc": SECRETS,
    "signal to the engine": SIGNALS,
    "signal to a process": SIGNALS,
}
HOST_PROCESSES = os.readlink("/proc/self/ns/pid")
KILL_EVERYBODY = """
import json, os, signal, sys
if os.readlink('/proc/self/ns/pid') == json.loads(sys.argv[1])['namespace']:
    raise SystemExit('these are the processes of the host')
os.kill(-1, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""
LIST_DESCRIPTORS = """
import os
print(sorted(int(name) for name in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + name)))
"""

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "aarch64"), reason="the numbers of the system calls are those of two machines"
)


@pytest.fixture
def victim() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts processes of the user with a secret in their environment."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE, env={VARIABLE: "secret"}
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.usefixtures("canary")
def test_a8_secrets_memory_and_lives_of_others_are_out_of_reach(
    ground: Any, victim: Callable[[], subprocess.Popen[bytes]], unconfined: Unconfined, tmp_path: Path
) -> None:
    """What succeeds without a sandbox fails in one; a weaker level names each way in among what it does not hold."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    settings = {"variable": VARIABLE, "engine": os.getpid(), "secret": str(secret), "namespace": HOST_PROCESSES}

    def succeeded(attempted: Callable[[dict[str, object]], set[str]]) -> set[str]:
        process = victim()
        found = attempted({**settings, "victim": process.pid})
        return found | ({"signal to a process"} if has_died(process) else set())

    real = succeeded(lambda found: unconfined("secrets_and_signals", found))
    assert real >= {"environment of a process", "secret file", "signal to the engine", "signal to a process"}
    allowed = {name for name in real if ground.declares(WEAKNESSES[name])}
    assert succeeded(lambda found: ground.attempted("secrets_and_signals", found)) == allowed
    assert not (ground.is_strong and allowed)


def test_a8_the_kernel_offers_nothing_beside(ground: Any, unconfined: Unconfined) -> None:
    """Keys, rings, nested namespaces, mounts, tracing and typing into a terminal are refused in a sandbox."""
    terminal, slave = os.openpty()
    try:
        settings = {"token": ground.token, "terminal": slave, "mount_namespace": os.readlink("/proc/self/ns/mnt")}
        real = unconfined("system_calls", settings, descriptors=(slave,))
        succeeded = ground.attempted("system_calls", settings, inherit=[slave])
    finally:
        os.close(terminal)
        os.close(slave)
    assert real >= {"ptrace"}
    assert succeeded == (real if ground.declares(CALLS) else set())
    assert not (ground.is_strong and succeeded)


def test_a8_killing_everybody_kills_nobody_else(ground: Any, victim: Callable[[], subprocess.Popen[bytes]]) -> None:
    """kill(-1) ends the sandbox at most. At a level without process namespace it is never tried: it says so."""
    if not ground.is_strong:
        assert ground.declares(SIGNALS)
        return
    process = victim()
    completed = ground.run(KILL_EVERYBODY, {"namespace": HOST_PROCESSES})
    assert (completed.returncode, completed.stderr, has_died(process)) == (-signal.SIGKILL, b"", False)


def test_a8_a_program_gets_no_descriptor_of_the_engine(ground: Any) -> None:
    """The three standard streams are all it has; the one that /proc is read with comes and goes."""
    with open(__file__) as inheritable:
        os.set_inheritable(inheritable.fileno(), True)
        assert ground.run(LIST_DESCRIPTORS).stdout == b"[0, 1, 2]\n"


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret in the environment of the engine."""
    monkeypatch.setenv(VARIABLE, "secret")


def has_died(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process ended, or is about to."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return False
    return True

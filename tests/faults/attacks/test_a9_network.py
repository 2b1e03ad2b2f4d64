"""A9: every way to a listener of the host, to name servers and to the machine below."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.process import Launcher

NETWORK = "network"
FILES = "files of the user"
WEAKNESSES = {
    "tcp": NETWORK,
    "udp": NETWORK,
    "abstract socket": NETWORK,
    "path socket": FILES,
    "agent socket": "nothing may hand it on",
    "DNS": NETWORK,
    "vsock": "system calls",
    "netlink": NETWORK,
    "packet socket": "system calls",
    "raw socket": "system calls",
}
SPOKEN = {"tcp", "udp", "abstract socket", "path socket"}


@pytest.fixture(params=["eval", "generator", "generator without network"])
def profile_name(request: pytest.FixtureRequest) -> str:
    """Each kind of program; of generators both kinds of network."""
    return str(request.param)


@pytest.fixture
def listeners(tmp_path: Path) -> Iterator[dict[str, socket.socket]]:
    """Listeners of the host, by how they are reached."""
    made: dict[str, socket.socket] = {}
    addresses: dict[str, tuple[int, int, str | tuple[str, int]]] = {
        "tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "abstract socket": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0orchestrator-attack-{os.getpid()}"),
        "path socket": (socket.AF_UNIX, socket.SOCK_STREAM, str(tmp_path / "socket")),
    }
    for name, (family, kind, address) in addresses.items():
        made[name] = socket.socket(family, kind)
        made[name].setblocking(False)
        made[name].bind(address)
        if kind == socket.SOCK_STREAM:
            made[name].listen(8)
    yield made
    for listener in made.values():
        listener.close()


def test_a9_what_the_network_leads_to(
    ground: Any,
    unconfined: Callable[..., set[str]],
    listeners: dict[str, socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without a network the host's listeners hear nothing; with it, what can be reached is said beforehand."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(ground.parent / "socket"))
    settings = {
        "tcp": listeners["tcp"].getsockname()[1],
        "udp": listeners["udp"].getsockname()[1],
        "abstract": listeners["abstract socket"].getsockname()[1:].decode(),
        "path": str(ground.parent / "socket"),
    }
    real = unconfined("channels", settings) | heard(listeners)
    assert real >= {*SPOKEN, "netlink"}
    allowed = {name for name in real if ground.declares(WEAKNESSES[name])}
    assert ground.attempted("channels", settings) | heard(listeners) == allowed
    assert not (ground.is_strong and allowed - of_the_host(ground.profile.network))


def of_the_host(network: bool) -> set[str]:
    """What a program that may use the host's network reaches, and no other."""
    return {"tcp", "udp", "abstract socket", "DNS", "netlink"} if network else set()


def test_a9_who_has_no_network_says_nothing_of_it(suite_launcher: Launcher, level: str) -> None:
    """An eval never has one in a sandbox; without a sandbox the level says that it does."""
    assert (NETWORK in suite_launcher.isolation.not_enforced) == (level != "strong")


def heard(listeners: dict[str, socket.socket]) -> set[str]:
    """Which of the listeners heard something since they were last asked."""
    found = set()
    for name, listener in listeners.items():
        try:
            while True:
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(1)
                found.add(name)
        except BlockingIOError:
            pass
    return found

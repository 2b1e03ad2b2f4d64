"""A9, ways to somebody else: each attack is true when it led somewhere. The listeners are the host's own."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

PAUSE_S = 0.2
ANY_CONTEXT = 0xFFFFFFFF
NOBODY = ("192.0.2.53", 53)
"""An address for documentation (RFC 5737); connecting a datagram socket to it sends nothing."""


def sent(family: int, kind: int, address: Any) -> bool:
    """Send a byte."""
    with socket.socket(family, kind) as channel:
        channel.settimeout(PAUSE_S)
        channel.connect(address)
        channel.send(b"x")
    return True


def tcp(settings: dict[str, Any]) -> bool:
    """The loopback."""
    return sent(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", settings["tcp"]))


def udp(settings: dict[str, Any]) -> bool:
    """The loopback; sending succeeds wherever there is one, so only the host can tell."""
    sent(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", settings["udp"]))
    return False


def abstract(settings: dict[str, Any]) -> bool:
    """A socket that is no file."""
    return sent(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + settings["abstract"])


def path(settings: dict[str, Any]) -> bool:
    """A socket that is a file, as those of docker and of ssh-agent are."""
    return sent(socket.AF_UNIX, socket.SOCK_STREAM, settings["path"])


def agent(settings: dict[str, Any]) -> bool:
    """The same, by the variable that names it."""
    return bool(settings) and sent(socket.AF_UNIX, socket.SOCK_STREAM, os.environ.get("SSH_AUTH_SOCK", "/none"))


def route(_: dict[str, Any]) -> bool:
    """A way to name servers outside."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as channel:
        channel.connect(NOBODY)
    return True


def machine(_: dict[str, Any]) -> bool:
    """A socket to the machine that this one runs on."""
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return True


def netlink(_: dict[str, Any]) -> bool:
    """A socket to the kernel."""
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    return True


def packets(_: dict[str, Any]) -> bool:
    """A socket that sees the packets of all."""
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    return True


def raw(_: dict[str, Any]) -> bool:
    """A socket for packets of one's own making."""
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True


ATTACKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "tcp": tcp,
    "udp": udp,
    "abstract socket": abstract,
    "path socket": path,
    "agent socket": agent,
    "DNS": route,
    "vsock": machine,
    "netlink": netlink,
    "packet socket": packets,
    "raw socket": raw,
}

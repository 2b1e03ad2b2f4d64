"""What of the host a program has to see in order to run: the system, its interpreter, and the program itself."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

__all__ = ["SYSTEM", "base_interpreter", "is_within", "readable_paths"]

SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/gai.conf",
    "/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/etc/locale.conf", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/pki/ca-trust", "/etc/pki/tls/certs",
    "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
)  # fmt: skip
"""Paths that are visible, read-only, when they exist: programs, libraries, and harmless configuration."""

_NEVER_BY_NAME: Final = ("/dev", "/etc", "/proc", "/run", "/sys")


def readable_paths(
    command: Sequence[str], directory: str, environment: Mapping[str, str], configured: Iterable[Path]
) -> tuple[str, ...]:
    """Absolute paths of the host that exist and that a command may read beside the system; none twice.

    The interpreter, the program, and what the command names by an absolute path; never the user's home or
    what holds it, unless it is configured.
    """
    home = environment.get("HOME", "")
    needed = [path for path in _needed(command, directory, environment) if not is_within(home, path)]
    wished = [os.path.abspath(path) for path in configured]
    return tuple(dict.fromkeys(path for path in (*wished, *needed) if os.path.exists(path)))


def base_interpreter() -> str:
    """The interpreter itself rather than the one of a virtual environment: it starts sooner."""
    return getattr(sys, "_base_executable", "") or sys.executable


def is_within(path: str, directory: str) -> bool:
    """Whether an absolute path is the directory or below it; an empty one is nowhere."""
    return bool(path) and Path(path).is_relative_to(directory)


def _needed(command: Sequence[str], directory: str, environment: Mapping[str, str]) -> Iterator[str]:
    yield from _of_interpreter()
    for variable in ("PYTHONPATH", "LD_LIBRARY_PATH"):
        yield from (path for path in environment.get(variable, "").split(os.pathsep) if os.path.isabs(path))
    yield from (word for word in command[1:] if os.path.isabs(word) and not word.startswith(_NEVER_BY_NAME))
    program = os.path.join(directory, command[0]) if "/" in command[0] else command[0]
    found = shutil.which(program, path=environment.get("PATH"))
    if found is not None and not is_within(found, directory):
        yield from _of_program(os.path.abspath(found))


@lru_cache(maxsize=1)
def _of_interpreter() -> tuple[str, ...]:
    """Its prefixes, and what its site-packages point to, as they do to projects that are being worked on."""
    roots = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(base_interpreter())]
    packages = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    pointed = [path for folder in packages for path in _pointed_to(folder)]
    resolved = [os.path.realpath(path) for path in roots]
    return tuple(dict.fromkeys([*roots, *resolved, *packages, *pointed]))


def _pointed_to(folder: str) -> Iterator[str]:
    for file in sorted(Path(folder).glob("*.pth")):
        for line in file.read_text(errors="replace").splitlines():
            if os.path.isabs(line) and os.path.isdir(line):
                yield line


def _of_program(found: str) -> Iterator[str]:
    """The program's directory, where it really lies, and the environment or installation that it belongs to."""
    for path in dict.fromkeys((found, os.path.realpath(found))):
        folder = os.path.dirname(path)
        yield path
        yield folder
        parent = os.path.dirname(folder)
        if os.path.basename(folder) == "bin":
            marker = os.path.join(parent, "pyvenv.cfg")
            if os.path.isfile(marker):
                yield parent
                yield from _home_of(marker)


def _home_of(marker: str) -> Iterator[str]:
    for line in Path(marker).read_text(errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home" and os.path.isabs(value.strip()):
            yield os.path.dirname(os.path.realpath(value.strip()))

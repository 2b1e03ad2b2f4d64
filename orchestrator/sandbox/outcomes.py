"""Outcomes of probes, kept until the machine starts anew, in a directory that nobody else can write to."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from orchestrator_events.isolation import Probe

__all__ = ["keep", "kept", "name_of"]

LARGEST: Final = 64_000
"""Size of an outcome file that is read at all, bytes."""
_OUTCOMES: Final = frozenset({"denied", "allowed", "bounded"})


def name_of(*configuration: object) -> str:
    """The file name for one configuration on this boot; the outcomes hold for nothing else."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    text = "\0".join(map(repr, (boot, os.geteuid(), os.readlink("/proc/self/ns/user"), *configuration)))
    return f"sandbox-{sha256(text.encode(errors='surrogateescape')).hexdigest()[:32]}.json"


def kept(name: str) -> tuple[Probe, ...] | None:
    """What was found before; None when there is nothing, or nothing that can be trusted."""
    folder = _folder()
    if folder is None:
        return None
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            return _read(file.read(LARGEST)) if _is_private(os.fstat(descriptor), stat.S_ISREG) else None
    except (OSError, TypeError, ValueError, RecursionError):
        return None


def keep(name: str, probes: tuple[Probe, ...]) -> None:
    """Write down what was found; where that cannot be done it is found anew next time."""
    folder = _folder()
    if folder is None:
        return
    with suppress(OSError):
        descriptor, path = tempfile.mkstemp(dir=folder, prefix=".sandbox-")
        try:
            with open(descriptor, "w") as file:
                json.dump([[probe.name, probe.outcome] for probe in probes], file)
            os.replace(path, folder / name)
        except OSError:
            os.unlink(path)


def _folder() -> Path | None:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(home):
        return None
    folder = Path(home) / "orchestrator"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if _is_private(os.lstat(folder), stat.S_ISDIR) else None
    except OSError:
        return None


def _is_private(found: os.stat_result, is_kind: object) -> bool:
    assert callable(is_kind)
    return bool(is_kind(found.st_mode)) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _read(data: bytes) -> tuple[Probe, ...] | None:
    pairs = json.loads(data)
    if not isinstance(pairs, list) or not pairs:
        return None
    if not all(isinstance(name, str) and outcome in _OUTCOMES for name, outcome in pairs):
        return None
    return tuple(Probe(name, outcome) for name, outcome in pairs)

"""Which paths a candidate's files may have and which ids a run, so that writing them touches nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from orchestrator.adapter_errors import CandidateRefusedError
from orchestrator.excerpt import excerpt
from orchestrator_events.errors import OrchestratorError

__all__ = ["MOST_FILES", "UnsafeRunIdError", "path_key", "refuse_unsafe_paths", "refuse_unsafe_run_id"]

MOST_FILES: Final = 1_000
"""How many files a candidate may have."""

LONGEST_PATH: Final = 1_000
"""Longest path, bytes of UTF-8."""
LONGEST_NAME: Final = 255
"""Longest name between two slashes, bytes of UTF-8: what common file systems take."""

_UNSEEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class UnsafeRunIdError(OrchestratorError, ValueError):
    """A run id cannot be the name of a directory, or would not print as it is; `run_id` is what was given."""

    def __init__(self, run_id: object) -> None:
        self.run_id = run_id
        super().__init__(
            f"{run_id!r:.80} cannot be a run id: use at most 128 of the letters A-Z and a-z, digits, '.', '_' and "
            "'-', beginning with a letter or digit, and no name that is reserved for devices"
        )


def refuse_unsafe_run_id(run_id: object) -> None:
    """Raise UnsafeRunIdError for an id that may not become a file name or stand in a terminal."""
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id) or _DEVICES.fullmatch(run_id):
        raise UnsafeRunIdError(run_id)


def refuse_unsafe_paths(paths: Iterable[str], taken: Iterable[str] = ()) -> None:
    """Raise CandidateRefusedError unless every path is relative, POSIX, plain and unlike all others.

    `taken` are paths that are in use already. Paths that differ only in case or in Unicode form count as
    the same, and no path may be a directory of another.
    """
    paths = tuple(paths)
    if len(paths) > MOST_FILES:
        raise CandidateRefusedError(f"the candidate has {len(paths)} files, at most {MOST_FILES} are taken")
    files = {path_key(path): path for path in taken}
    folders = {folder: path for path in files.values() for folder in _folders(path)}
    for path in paths:
        fault = _fault(path) or _clash(path, files, folders)
        if fault:
            shown = excerpt(ascii(path), 200).replace("\n", " ")
            raise CandidateRefusedError(f"the candidate's file {shown} {fault}")
        files[path_key(path)] = path
        folders |= dict.fromkeys(_folders(path), path)


def path_key(path: str) -> str:
    """The same for all paths that some file system takes for one."""
    return unicodedata.normalize("NFC", path).casefold()


def _folders(path: str) -> list[str]:
    names = path_key(path).split("/")[:-1]
    return list(accumulate(names, "{}/{}".format))


def _clash(path: str, files: dict[str, str], folders: dict[str, str]) -> str:
    key = path_key(path)
    if key in files:
        return f"has the same path as {files[key]!a}, which is there already"
    if key in folders:
        return f"is a directory of {folders[key]!a}"
    for folder in _folders(path):
        if folder in files:
            return f"lies below {files[folder]!a}, which is a file"
    return ""


def _fault(path: str) -> str:
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        return "holds a lone surrogate, which no file name can carry"
    if len(encoded) > LONGEST_PATH:
        return f"has a path of more than {LONGEST_PATH} bytes"
    if path.startswith("/"):
        return "has an absolute path: make it relative"
    return _character_fault(path) or next((fault for name in path.split("/") if (fault := _name_fault(name))), "")


def _character_fault(path: str) -> str:
    if any(unicodedata.category(character) in _UNSEEN for character in path):
        return "holds a control character or one that nobody sees"
    if "\\" in path:
        return "holds a backslash: separate directories with '/'"
    return "holds a colon, which some systems read as a drive or a stream" if ":" in path else ""


def _name_fault(name: str) -> str:
    if name in ("", ".", ".."):
        return f"has {name!a} as a part of its path"
    if name[-1] in ". ":
        return f"has the name {name!a}, whose last character some systems drop"
    if len(name.encode()) > LONGEST_NAME:
        return f"has a name of more than {LONGEST_NAME} bytes"
    if _DEVICES.fullmatch(name):
        return f"has the reserved name {name!a} in its path"
    return ""

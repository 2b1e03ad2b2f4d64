"""A7, changes to the host: what came of them is seen from there alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def left(settings: dict[str, Any]) -> bool:
    """Leave a file in each directory, and in what is reached from here in roundabout ways."""
    for folder in settings["folders"]:
        with suppress(OSError):
            os.close(os.open(f"{folder}/{settings['token']}", os.O_CREAT | os.O_WRONLY))
    return False


def changed(settings: dict[str, Any]) -> bool:
    """Change, cut, rename, open up and remove a file that is there."""
    file = settings["file"]
    acts: tuple[Callable[[], object], ...] = (
        lambda: os.truncate(file, 0),
        lambda: os.write(os.open(file, os.O_WRONLY), b"changed"),
        lambda: os.chmod(file, 0o777),
        lambda: os.setxattr(file, "user.canary", b"x"),
        lambda: os.utime(file, (0, 0)),
        lambda: os.link(file, f"{file}-linked"),
        lambda: os.rename(file, f"{file}-renamed"),
        lambda: os.unlink(file),
        lambda: os.unlink(f"{file}-renamed"),
    )
    for act in acts:
        with suppress(OSError):
            act()
    return False


ATTACKS: dict[str, Callable[[dict[str, Any]], bool]] = {"left": left, "changed": changed}

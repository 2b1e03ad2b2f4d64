"""The command `workflow new`: a domain that works as it is, to be changed into one's own."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

from orchestrator.cli.exitcodes import RequestError
from orchestrator_states.catalogue import LIFECYCLES

__all__ = ["write_skeleton"]

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
WRITTEN: Final = ("domain.yaml", "NAME_phases.py", "test_NAME.py", "phases/02-work.md")
"""The files of a skeleton; each lies beside this module as a template, below `template`."""


def write_skeleton(name: str, directory: Path) -> None:
    """Write the files of a new domain into a directory of its name; nothing that is there is overwritten."""
    if not NAME.fullmatch(name) or name in LIFECYCLES:
        raise RequestError(f"{name!r} cannot name a domain: use lower-case words joined by '-', such as release-notes")
    folder = directory / name
    texts = {folder / named(path, name): text_of(path, name) for path in WRITTEN}
    taken = [str(path) for path in texts if path.exists()]
    if taken:
        raise RequestError(f"{', '.join(taken)} is there already: choose another name, or take it away")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    sys.stdout.write(f"\nrun it:   orchestrator workflow run {folder}\n")
    sys.stdout.write(f"check it: orchestrator workflow check {folder}\n")


def text_of(path: str, name: str) -> str:
    """A template with the domain's name in it."""
    template = files("orchestrator.cli.workflows").joinpath("template", *f"{path}.txt".split("/"))
    return named(template.read_text(encoding="utf-8"), name)


def named(text: str, name: str) -> str:
    """A text with the domain's name in the place of DOMAIN, and as a module's name in that of NAME."""
    return text.replace("DOMAIN", name).replace("NAME", name.replace("-", "_"))

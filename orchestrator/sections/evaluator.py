"""`[evaluator]`: who judges the candidates, and what holds it in."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.errors import DocumentError
from orchestrator.quantities import parse_duration
from orchestrator.sections.checking import names_a_program, read_by, stray_keys

__all__ = ["PYTEST", "EvaluatorSection"]

PYTEST: Final = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}")
"""The eval runner unless another one is named."""

COMMON: Final = (
    "runner", "suite", "candidate_file", "name", "environment", "readable", "time", "pins", "controls", "work",
)  # fmt: skip
TAKEN: Final = {
    "command": (*COMMON, "command", "report", "report_file"),
    "separate": (*COMMON, "modules", "shared", "framework", "arguments", "call_time"),
}
"""The keys that each runner takes."""


@attrs.frozen(kw_only=True)
class EvaluatorSection:
    """`[evaluator]`: the program that runs the eval suite, and the suite."""

    runner: Literal["command", "separate"] = "command"
    """Whether the suite is any program, or Python tests whose judge runs apart from the candidate."""
    command: str | tuple[str, ...] = attrs.field(default=PYTEST, validator=names_a_program)
    """Program and arguments; `{python}`, `{report}` and `{candidate}` are filled in."""
    suite: Path | None = None
    """Directory of the suite; it is copied for each evaluation."""
    candidate_file: str = ""
    """Name under which a candidate that is one text stands beside the suite."""
    report: Literal["junit", "ctrf", "json"] = "junit"
    report_file: str = "report.xml"
    name: str = ""
    environment: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    """What the suite may read beside the system and itself, when a sandbox holds it."""
    work: Literal["read-only", "scratch"] | None = None
    """Whether the suite sees itself read-only, or as a copy that it may write beside, as it does by itself only
    when the command has no `{report}`."""
    modules: tuple[str, ...] = ()
    """Modules of the candidate that the separate judge reaches; by default those its files make."""
    framework: Literal["pytest", "unittest"] = "pytest"
    """What the separate judge's suite is written for."""
    arguments: tuple[str, ...] = ()
    """What the framework is given: options and paths for pytest; files, modules or cases for unittest."""
    shared: tuple[str, ...] = ()
    """Files of the suite that the candidate of a separate judge may read too."""
    call_time: str | float | None = attrs.field(default=None, validator=read_by(parse_duration))
    """Longest time of one call of the separate judge into the candidate."""
    pins: Path | None = None
    """File of the case ids that a trusted run pinned."""
    controls: tuple[str, ...] = ()
    """Ids of cases that must fail, or the judge was tampered with."""
    time: str | float | None = attrs.field(default=60, validator=read_by(parse_duration))
    """Longest time of one evaluation."""

    def __attrs_post_init__(self) -> None:
        faults = stray_keys(self, TAKEN[self.runner], f'an evaluator with runner = "{self.runner}"')
        if faults:
            raise DocumentError("[evaluator]", tuple(faults))

    @property
    def seconds(self) -> float | None:
        """Longest time of one evaluation, seconds; None for no limit of its own."""
        return None if self.time is None else parse_duration(self.time)

    @property
    def call_seconds(self) -> float | None:
        """Longest time of one call into the candidate, seconds; None for no limit of its own."""
        return None if self.call_time is None else parse_duration(self.call_time)

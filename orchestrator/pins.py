"""Pinned case ids: what a trusted run passed, so that later runs have to pass just that, by the same suite.

{
  "format": "orchestrator.pins/1",
  "spec_digest": "sha256:…",
  "suite_digest": "sha256:…",
  "made_from": "candidate luhn.py",
  "cases": ["luhn_test.LuhnTest::test_zero", …]
}
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from orchestrator.documents import read_document
from orchestrator.ports import Evaluator
from orchestrator.spec import MergedSpec
from orchestrator.structuring import structure
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.run import CasesPinned

__all__ = ["Pins", "PinsError", "cases_pinned", "digest_of_suite", "load_pins", "save_pins"]

FORMAT: Final = "orchestrator.pins/1"
IGNORED: Final = frozenset({"__pycache__", ".pytest_cache"})
"""Directories that Python and pytest leave in a suite."""
MOST_NAMED: Final = 5

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class PinsError(OrchestratorError):
    """Pins or controls do not fit the spec or the suite; nothing was spent."""


def _is_digest(_instance: object, attribute: attrs.Attribute[str], digest: str) -> None:
    if digest and not _DIGEST.fullmatch(digest):
        raise ValueError(f"{attribute.name} is not `sha256:` and 64 hexadecimal digits: pin the cases again")


def _names_cases(_instance: object, _attribute: object, cases: tuple[str, ...]) -> None:
    if not cases or not all(cases):
        raise ValueError("pins name at least one case, and each by its id: pin the cases again")
    if len(set(cases)) != len(cases):
        raise ValueError("a case is pinned twice: take one of them out")


@attrs.frozen(kw_only=True)
class Pins:
    """The ids that must be exactly those that pass."""

    spec_digest: str = attrs.field(validator=_is_digest)
    """Digest of the spec that the trusted candidate was made for."""
    cases: tuple[str, ...] = attrs.field(validator=_names_cases)
    suite_digest: str = attrs.field(default="", validator=_is_digest)
    """Digest over all files of the suite; empty when unknown, and then the suite is not held to it."""
    made_from: str = ""
    """What the pins were made from, in words."""
    format: Literal["orchestrator.pins/1"] = "orchestrator.pins/1"


def load_pins(path: str | os.PathLike[str]) -> Pins:
    """The pins in a .json file; DocumentError with every fault at once, each with its path."""
    return structure(read_document(path), Pins, os.fspath(path))


def save_pins(pins: Pins, path: str | os.PathLike[str]) -> None:
    """Write pins as JSON, whole or not at all; OSError when that cannot be done."""
    target = Path(path).absolute()
    told: dict[str, Any] = {
        "format": pins.format,
        "spec_digest": pins.spec_digest,
        "suite_digest": pins.suite_digest,
        "made_from": pins.made_from,
        "cases": list(pins.cases),
    }
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def digest_of_suite(suite: Path | Mapping[str, str]) -> str:
    """`sha256:` over the paths and bytes of all files of a suite, in order of their paths; links are followed.

    What Python and pytest leave beside them does not count. Raises OSError when a file cannot be read.
    """
    whole = sha256()
    for path, data in sorted(_files(suite)):
        for part in (path.encode(errors="surrogateescape"), data):
            whole.update(len(part).to_bytes(8, "big") + part)
    return f"sha256:{whole.hexdigest()}"


def cases_pinned(
    spec: MergedSpec, evaluator: Evaluator, pins: Pins | None, controls: Iterable[str] = ()
) -> CasesPinned | None:
    """What a run records of pins and controls; None where there are none.

    Raises PinsError when the pins are of another spec or suite, name other cases than the spec does, or when a
    control is a case that has to pass.
    """
    controls = tuple(controls)
    if pins is None and not controls:
        return None
    cases = () if pins is None else pins.cases
    if pins is not None:
        _refuse_other_spec(spec, pins)
        _refuse_other_suite(evaluator, pins)
    contradictory = sorted(set(controls) & (set(cases) | (spec.expected_cases or set())))
    if contradictory:
        raise PinsError(f"a case cannot both pass and fail: take {_some(contradictory)} out of controls")
    if not all(controls) or len(set(controls)) != len(controls):
        raise PinsError("a control is empty or named twice: give each case that must fail once")
    return CasesPinned(cases=cases, controls=controls, suite_digest="" if pins is None else pins.suite_digest)


def _refuse_other_spec(spec: MergedSpec, pins: Pins) -> None:
    if pins.spec_digest != spec.digest:
        raise PinsError(
            f"the cases were pinned for the spec {pins.spec_digest}, this one is {spec.digest}: pin them again"
        )
    named = spec.expected_cases
    if named is not None and named != set(pins.cases):
        differing = sorted(named ^ set(pins.cases))
        raise PinsError(f"the spec names its cases, and the pins differ in {_some(differing)}: pin them again")


def _refuse_other_suite(evaluator: Evaluator, pins: Pins) -> None:
    suite: object = getattr(evaluator, "suite", None)
    if not pins.suite_digest:
        return
    if not isinstance(suite, Path | Mapping):
        raise PinsError(
            f"the pins hold the suite to {pins.suite_digest}, and {evaluator.name} does not say which suite it runs: "
            "give it a `suite`, or take suite_digest out of the pins"
        )
    try:
        now = digest_of_suite(suite)
    except OSError as error:
        raise PinsError(f"the suite cannot be read: {error}") from error
    if now != pins.suite_digest:
        raise PinsError(f"the suite was changed: it was {pins.suite_digest}, it is {now}; pin its cases again")


def _files(suite: Path | Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    if isinstance(suite, Mapping):
        yield from ((path, text.encode(errors="surrogatepass")) for path, text in suite.items())
        return
    for folder, folders, names in os.walk(suite, followlinks=True, onerror=_raised):
        folders[:] = [name for name in folders if name not in IGNORED]
        for name in names:
            path = Path(folder, name)
            yield path.relative_to(suite).as_posix(), path.read_bytes()


def _raised(error: OSError) -> None:
    raise error


def _some(cases: list[str]) -> str:
    more = len(cases) - MOST_NAMED
    return ", ".join(map(repr, cases[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")

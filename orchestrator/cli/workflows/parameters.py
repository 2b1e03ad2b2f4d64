"""`--param KEY=VALUE`: the parameters of a workflow, read as the domain declares them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from orchestrator.cli.exitcodes import RequestError
from orchestrator.jsondata import JSON
from orchestrator.workflow.domain import Domain

__all__ = ["parameters_of"]


def parameters_of(given: Sequence[str], domain: Domain) -> dict[str, JSON]:
    """The parameters, checked; RequestError with every fault.

    A value is text, unless the domain declares the parameter as another type: then it is JSON.
    """
    found: dict[str, JSON] = {}
    faults: list[str] = []
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            faults.append(f"--param {text!r:.80} is not KEY=VALUE")
        elif key in found:
            faults.append(f"--param {key} is given twice: keep one of them")
        else:
            found[key] = value_of(value, kinds_of(key, domain))
    if not faults:
        faults += [f"--param {str(fault).removeprefix('$.')}" for fault in domain.parameter_faults(found)]
    if faults:
        raise RequestError("\n".join(faults))
    return found


def kinds_of(key: str, domain: Domain) -> list[str]:
    """The types that the domain declares for a parameter; none where it declares nothing."""
    kinds = (domain.parameters or {}).get(key, {}).get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def value_of(text: str, kinds: list[str]) -> JSON:
    """A value as text, or as JSON where the declared types say so; what is no JSON stays text, and is a fault later."""
    if not kinds or "string" in kinds:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

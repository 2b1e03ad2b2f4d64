"""A lifecycle as JSON text, for other programs."""

from __future__ import annotations

from json import dumps

from orchestrator_states.lifecycle import Lifecycle

__all__ = ["to_json"]


def to_json(lifecycle: Lifecycle) -> str:
    """What `Lifecycle.as_json` gives, as indented ASCII with sorted keys and a final newline.

    `Lifecycle.from_json` reads it back once decoded; equal tables give equal bytes.
    """
    return dumps(lifecycle.as_json(), indent=2, sort_keys=True) + "\n"

"""Validators of settings: whole numbers, durations, shares and names, each with a sentence for the file's author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

import attrs

__all__ = ["NAME", "a_count", "a_duration", "a_share", "a_size", "counts", "is_name", "names"]

MOST: Final = 1_000_000
"""Largest whole number that any setting may be."""
LEAST_SIZE: Final = 256
LONGEST_S: Final = 86_400.0
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}")

Attribute: TypeAlias = "attrs.Attribute[Any]"


def is_name(name: object) -> bool:
    """Whether it can name an operation, a metric, a role or a scope: at most 80 letters, digits and . _ : -"""
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def a_count(_: object, attribute: Attribute, value: object) -> None:
    """A whole number from 1."""
    if type(value) is not int or not 1 <= value <= MOST:
        raise ValueError(f"{attribute.name} must be a whole number from 1 to {MOST}, not {value!r}")


def a_size(_: object, attribute: Attribute, value: object) -> None:
    """Characters or bytes, at least as many as say something."""
    if type(value) is not int or not LEAST_SIZE <= value <= MOST:
        raise ValueError(f"{attribute.name} must be a whole number from {LEAST_SIZE} to {MOST}, not {value!r}")


def a_duration(_: object, attribute: Attribute, value: object) -> None:
    """Seconds, more than none and at most a day."""
    if type(value) not in {int, float} or not _within(value, 0.0, LONGEST_S) or not value:
        raise ValueError(f"{attribute.name} must be seconds above 0, at most {LONGEST_S:g}, not {value!r}")


def a_share(_: object, attribute: Attribute, value: object) -> None:
    """A number from 0 to 1."""
    if type(value) not in {int, float} or not _within(value, 0.0, 1.0):
        raise ValueError(f"{attribute.name} must be a number from 0 to 1, not {value!r}")


def counts(_: object, attribute: Attribute, value: Mapping[str, object]) -> None:
    """A table of names to whole numbers from 1."""
    names(_, attribute, value)
    for name, number in value.items():
        if type(number) is not int or not 1 <= number <= MOST:
            raise ValueError(f"{attribute.name}.{name} must be a whole number from 1 to {MOST}, not {number!r}")


def names(_: object, attribute: Attribute, value: Iterable[object]) -> None:
    """Plain names."""
    for name in value:
        if not is_name(name):
            raise ValueError(
                f"{attribute.name}: {str(name)[:80]!r} is no name: use at most 80 letters, digits, '.', '_', ':' "
                "and '-', beginning with a letter or digit"
            )


def _within(value: object, least: float, most: float) -> bool:
    return isinstance(value, int | float) and isfinite(value) and least <= value <= most

"""Checks that the tables of a configuration have in common, as attrs validators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from orchestrator.commandline import split_command
from orchestrator.faults import Fault

__all__ = ["default_of", "names_a_program", "names_a_variable", "names_variables", "read_by", "stray_keys", "was_set"]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Validator: TypeAlias = Callable[[object, object, Any], None]


def read_by(parse: Callable[[Any], object]) -> Validator:
    """A validator that accepts what `parse` can read, and None."""

    def check(_instance: object, _attribute: object, value: Any) -> None:
        if value is not None:
            parse(value)

    return check


def names_a_program(_instance: object, _attribute: object, command: str | tuple[str, ...]) -> None:
    """Refuse a text that a shell could not split."""
    if command != ():
        split_command(command)


def names_a_variable(_instance: object, _attribute: object, name: str) -> None:
    """Refuse what is no variable's name; it is not repeated, for it may be the secret itself."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("expected the name of an environment variable, such as OPENAI_API_KEY, and not its value")


def names_variables(instance: object, attribute: object, names: tuple[str, ...]) -> None:
    """The same for each of several."""
    for name in names:
        names_a_variable(instance, attribute, name)


def was_set(section: attrs.AttrsInstance, name: str) -> bool:
    """Whether a key has another value than its default."""
    return bool(getattr(section, name) != default_of(attrs.fields_dict(type(section))[name]))


def default_of(field: attrs.Attribute[Any]) -> object:
    """The value of a key that is left out."""
    made: object = getattr(field.default, "factory", None)
    return made() if callable(made) else field.default


def stray_keys(section: attrs.AttrsInstance, taken: Iterable[str], what: str) -> list[Fault]:
    """A fault for each key that was set and is not among those taken; `what` names the thing that takes them."""
    known = frozenset(taken)
    strays = [field.name for field in attrs.fields(type(section)) if field.name not in known]
    return [Fault(f"$.{name}", f"{what} does not take it: remove it") for name in strays if was_set(section, name)]

"""YAML without its traps: plain data, no aliases, no tags, no keys given twice.

PyYAML's safe loader stops code from running and little else: a few hundred bytes of merge keys cost
seconds and hundreds of megabytes, a second `budget:` silently replaces the first, `no` is false and
`1:30` is 90. Here only what JSON also has is resolved (`true`, `false`, `null`, JSON's numbers); every
other plain word is a string. The C loader is not used: it crashes the process on deep nesting.

PyYAML is imported by this module, so import this module only where a YAML text is at hand.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Final

import yaml

from orchestrator.jsondata import UnreadableTextError

__all__ = ["LONGEST_YAML", "load_plain_yaml"]

LONGEST_YAML: Final = 262_144
"""Longest text that is parsed, characters: this parser takes seconds for more."""


def load_plain_yaml(text: str, maximum_depth: int) -> Any:
    """The data of the one YAML document in `text`; raises UnreadableTextError at the first fault."""
    if len(text) > LONGEST_YAML:
        raise UnreadableTextError("", f"more than {LONGEST_YAML} characters of YAML: write it as JSON or TOML")
    try:
        loader = _PlainLoader(text, maximum_depth)
        return loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise UnreadableTextError(_place(error.problem_mark or error.context_mark), problem) from None
    except yaml.reader.ReaderError as error:
        raise UnreadableTextError(f"character {error.position}", error.reason) from None
    except ValueError:
        raise UnreadableTextError("", "an integer has thousands of digits: quote it") from None


class _PlainLoader(yaml.SafeLoader):
    yaml_implicit_resolvers: Any = {}  # noqa: RUF012  # PyYAML declares it per instance

    def __init__(self, text: str, maximum_depth: int) -> None:
        super().__init__(text)
        self._maximum_depth = maximum_depth
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave the parser untyped
        if isinstance(event, yaml.AliasEvent):
            raise _refusal("aliases are not accepted: write the value out", event.start_mark)
        if event.anchor is not None:
            raise _refusal("anchors are not accepted: write the value where it is used", event.start_mark)
        if event.tag is not None:
            raise _refusal("tags are not accepted: write plain values", event.start_mark)
        is_container = isinstance(event, yaml.CollectionStartEvent)
        if is_container and self._depth >= self._maximum_depth:
            raise _refusal(f"nested deeper than {self._maximum_depth} levels: flatten it", event.start_mark)
        self._depth += is_container
        node = super().compose_node(parent, index)
        self._depth -= is_container
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001  # PyYAML's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != _STRING_TAG:
                raise _refusal("a key must be a string: quote it", key.start_mark)
            if key.value == "<<" and key.style is None:
                raise _refusal("merge keys are not accepted: write the keys out", key.start_mark)
            if key.value in seen:
                raise _refusal(f"key {key.value!r} is given more than once: keep one", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_STRING_TAG: Final = "tag:yaml.org,2002:str"
_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)\Z")

_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["n", "N", "~", ""])
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, ["t", "T", "f", "F"])
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INTEGER, list("-0123456789"))
_PlainLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-0123456789"))


def _refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _place(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"

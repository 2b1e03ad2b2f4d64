"""Runs inside the child process of a `ProcessGenerator`: imports a function, calls it once, reports its answer.

The report is a word on a line of its own (ready, answer, unavailable, failed or transient), then JSON or the reason.
It goes to a pipe of its own; whatever the function prints goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.callables import is_async
from orchestrator.candidate import Candidate
from orchestrator.faults import closest_name
from orchestrator.ports import Generation, Request
from orchestrator.wording import describe

__all__ = ["main"]


def main(target: str, path: tuple[str, ...], report: str) -> None:
    """Call the function `module:name` with the request on standard input, or with none there only look it up.

    `path` comes first in `sys.path`.
    """
    data = sys.stdin.buffer.read()
    request = read_request(data) if data else None
    with open(report, "w", encoding="utf-8", errors="backslashreplace") as file:
        os.dup2(2, 1)
        sys.path[:0] = path
        word, content = outcome(target, request, path)
        file.write(f"{word}\n{content}")


def outcome(target: str, request: Request | None, path: tuple[str, ...]) -> tuple[str, str]:
    """The word for what came of the call, and its answer or reason."""
    try:
        function = function_called(target, path)
        return ("ready", "") if request is None else ("answer", json.dumps(answer_json(function(request))))
    except GeneratorUnavailableError as error:
        return "unavailable", str(error)
    except TransientGenerationError as error:
        return "transient", json.dumps({"reason": str(error), "retry_after": error.retry_after})
    except GenerationError as error:
        return "failed", str(error)
    except Exception as error:  # noqa: BLE001 -- whatever it raises is told to the parent
        sys.stdout.flush()
        own = error.__traceback__
        traceback.print_exception(type(error), error, None if own is None else own.tb_next)
        return "failed", describe(error)


def read_request(data: bytes) -> Request:
    """The request as the parent wrote it."""
    fields: dict[str, Any] = json.loads(data)
    known = {field.name for field in attrs.fields(Request)}
    return Request(**{name: value for name, value in fields.items() if name in known})


def function_called(target: str, path: tuple[str, ...]) -> Callable[[Request], object]:
    """The function of this name; GeneratorUnavailableError says what is wrong with the name."""
    module_name, _, names = target.partition(":")
    found: Any = module_called(module_name, path)
    for name in names.split("."):
        if not hasattr(found, name):
            raise GeneratorUnavailableError(
                f"function {target!r}: {module_name} has no {name!r}{meant(closest_name(name, dir(found)))}"
            )
        found = getattr(found, name)
    if isinstance(found, type) or not callable(found):
        raise GeneratorUnavailableError(f"function {target!r} is {type(found).__name__}: name a function")
    if is_async(found):
        raise GeneratorUnavailableError(
            f"function {target!r} is async: name a plain function, which may call asyncio.run itself"
        )
    return found  # type: ignore[no-any-return]  # callable, as was looked up


def module_called(name: str, path: tuple[str, ...]) -> object:
    """The module of this name."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise GeneratorUnavailableError(f"module {name!r} cannot be imported: {error}") from error
        parent, _, last = error.name.rpartition(".")
        places = list(path) if not parent else submodule_places(parent)
        near = closest_name(last, (module.name for module in pkgutil.iter_modules(places)))
        hint = meant(f"{parent}.{near}" if parent and near else near)
        looked = f"; looked in {', '.join(path)} and the installed packages" if not parent else ""
        raise GeneratorUnavailableError(f"no module {error.name!r}{hint}{looked}") from None
    except Exception as error:
        traceback.print_exc()
        raise GeneratorUnavailableError(f"module {name!r} cannot be imported: {describe(error)}") from error


def submodule_places(parent: str) -> list[str]:
    """Where submodules of an imported package lie."""
    return list(getattr(sys.modules.get(parent), "__path__", ()))


def meant(near: str) -> str:
    """The suggestion, if there is one."""
    return f" (did you mean {near!r}?)" if near else ""


def answer_json(answer: object) -> dict[str, Any]:
    """What the function returned, as the JSON that a generating program answers."""
    match answer:
        case Generation():
            used = {} if answer.usage is None else {"usage": used_json(answer)}
            return {**answer_json(answer.candidate), **used}
        case Candidate() if answer.files:
            return {"files": dict(answer.files)}
        case Candidate():
            return {"candidate": answer.text}
        case str():
            return {"candidate": answer}
        case Mapping() if all(isinstance(part, str) for pair in answer.items() for part in pair):
            return {"files": dict(answer)}
    raise GenerationError(
        f"the function returned {type(answer).__name__}: "
        "return a str, a mapping of path to text, a Candidate or a Generation"
    )


def used_json(answer: Generation) -> dict[str, Any]:
    """What the call used, as far as the protocol has room for it."""
    assert answer.usage is not None
    told = attrs.asdict(answer.usage)
    names = ("input_tokens", "output_tokens", "money_micro")
    return {name: told[name] for name in names if told.get(name) is not None}

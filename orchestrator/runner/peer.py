"""One end of the conversation: asks the other side, and serves what it asks meanwhile.

Both sides take turns: who asks reads until the answer is there, and serves every question that comes before it,
which is how callbacks work. A call that is given up, because an alarm rang or its time is over, is interrupted over
there; when that does not help, the conversation is over.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from orchestrator.runner.crossing import Crossing, reduced
from orchestrator.runner.values import Loan, refill
from orchestrator.runner.wire import GoneError, LateError, ProtocolError, Wire, exactly, field

__all__ = ["BrokenError", "Peer"]

HELD: Final[tuple[Any, ...]] = ([], (), {}, {}.values(), {}.items(), set(), "", range(1), b"")
ITERATORS: Final = tuple(type(iter(each)) for each in HELD)
"""Iterators that cross with all that they hold."""
GIVE_UP_S: Final = 1.0
"""How long a call that was given up may take to stop, seconds."""
WITHOUT_TARGET: Final = frozenset({"hello", "import", "input", "stdin"})
QUESTION: Final = frozenset({"n", "do", "on", "name", "args", "kwargs", "output"})
ANSWER: Final = frozenset({"n", "value", "error", "fault", "changes", "output"})


class BrokenError(BaseException):
    """The candidate's process is gone or breaks the protocol: no suite can take this for an error it expects."""


class Peer(Crossing):
    """The other process, as this one sees it."""

    def __init__(self, wire: Wire, *, trusts: bool, call_seconds: float | None = None) -> None:
        super().__init__(trusts=trusts)
        self.wire = wire
        self.call_seconds = call_seconds
        self.lock = threading.RLock()
        self.last = 0
        self.faults: list[str] = []
        """What went wrong with the other side so far."""
        self.broken = ""
        """Why nothing more can be asked."""
        self.services: dict[str, Callable[[Any, str, list[Any], dict[str, Any]], Any]] = dict(SERVICES)

    def ask(self, do: str, on: int = 0, name: str = "", args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:  # fmt: skip  # noqa: E501
        """Have the other side do something; raises what that raised, BrokenError when there is no other side."""
        __tracebackhide__ = True
        with self.lock:
            return self.asked(do, on, name, args, kwargs or {})

    def asked(self, do: str, on: int, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """`ask`, while no other thread does."""
        __tracebackhide__ = True
        if self.broken:
            raise BrokenError(self.broken)
        loan = Loan()
        encoder = self.encoder(loan, lends=True)
        self.last += 1
        number = self.last
        question: dict[str, Any] = {"n": number, "do": do, "on": on, "name": name, "output": self.written()}
        self.telling.clear()
        try:
            question["args"] = [encoder.encode(each) for each in args]
            question["kwargs"] = [[key, encoder.encode(each)] for key, each in kwargs.items()]
        except BaseException:
            self.untell()
            raise
        answer = self.answered(question, number)
        try:
            return self.taken(answer, loan)
        except ProtocolError as error:
            raise self.fault(f"the candidate's process answered with {error}", is_over=True) from None

    def answered(self, question: dict[str, Any], number: int) -> dict[str, Any]:
        """The answer to a question; every fault of the other side is noted."""
        __tracebackhide__ = True
        until = None if self.call_seconds is None else time.monotonic() + self.call_seconds
        try:
            self.wire.send(question)
            return self.wait(number, until)
        except GoneError:
            raise self.fault("the candidate's process ended", is_over=True) from None
        except LateError:
            self.give_up(number)
            raise self.fault(f"a call took longer than {self.call_seconds:g} s") from None
        except ProtocolError as error:
            raise self.fault(f"the candidate's process sent {error}", is_over=True) from None
        except BaseException:
            self.give_up(number)
            raise

    def wait(self, number: int, until: float | None) -> dict[str, Any]:
        """Serve until the answer to this question comes."""
        while True:
            message = self.wire.receive(until)
            self.show(*written_by(message))
            if "do" in message:
                self.serve(message)
            elif field(message, "n", int) == number:
                return message
            else:
                raise ProtocolError("an answer to another question")

    def give_up(self, number: int) -> None:
        """Stop a call that nobody waits for any more, so that the next one can be made."""
        until = time.monotonic() + GIVE_UP_S
        try:
            self.wire.send({"do": "interrupt", "n": number})
            while True:
                message = self.wire.receive(until)
                if "do" in message:
                    self.wire.send({"n": field(message, "n", int), "fault": "the call was given up"})
                elif field(message, "n", int) == number:
                    return
        except (GoneError, LateError, ProtocolError):
            self.broken = "a call was given up, and the candidate's process did not stop it"

    def taken(self, answer: dict[str, Any], loan: Loan) -> Any:
        """The value of an answer, what was lent brought up to date; raises the error that it holds."""
        __tracebackhide__ = True
        if not answer.keys() <= ANSWER:
            raise ProtocolError(f"an answer with {sorted(answer.keys() - ANSWER)}")
        if "fault" in answer:
            raise self.fault(f"the call could not be made: {field(answer, 'fault', str)}")
        decoder = self.decoder(loan, borrows=False)
        for number, content in field(answer, "changes", list, []):
            refill(decoder.lent(number), decoder.decode(content))
        if "error" not in answer:
            return decoder.decode(answer.get("value"))
        error = decoder.decode(answer["error"])
        if not isinstance(error, BaseException):
            raise ProtocolError("an error that is none")
        raise self.bearable(error)

    def fault(self, text: str, *, is_over: bool = False) -> BrokenError:
        """Note that the other side failed; no case in which this happens can pass."""
        self.faults.append(text)
        if is_over and not self.broken:
            self.broken = text
        return BrokenError(text)

    def serve(self, message: dict[str, Any]) -> None:
        """Do what the other side asks, and answer."""
        if not message.keys() <= QUESTION:
            raise ProtocolError(f"a question with {sorted(message.keys() - QUESTION)}")
        loan = Loan()
        answer: dict[str, Any] = {"n": field(message, "n", int)}
        decoder = self.decoder(loan, borrows=True)
        args = [decoder.decode(each) for each in field(message, "args", list, [])]
        kwargs = {exactly(str, key): decoder.decode(each) for key, each in field(message, "kwargs", list, [])}
        loan.remember()
        try:
            answer |= self.outcome(message, args, kwargs, loan)
            answer["changes"] = [
                [number, self.encoder(loan).content(loan.containers[number])] for number in loan.changed()
            ]
        except (TypeError, ValueError, RecursionError) as error:
            self.untell()
            answer = {"n": answer["n"], "fault": f"{type(error).__name__}: {error}"}
        answer["output"] = self.written()
        try:
            self.wire.send(answer)
        except ProtocolError as error:
            self.untell()
            self.wire.send({"n": answer["n"], "fault": str(error)})

    def outcome(self, message: dict[str, Any], args: list[Any], kwargs: dict[str, Any], loan: Loan) -> dict[str, Any]:
        """What came of a request: a value or an error, encoded."""
        do, on, name = field(message, "do", str), field(message, "on", int, 0), field(message, "name", str, "")
        encoder = self.encoder(loan)
        try:
            with self.at_work(message["n"]):
                value = self.done(do, on, name, args, kwargs)
        except (GoneError, ProtocolError, BrokenError):
            raise
        except BaseException as error:  # noqa: BLE001 -- whatever it is, the other side asked for it
            self.telling.clear()
            return {"error": self.error(error, encoder)}
        self.telling.clear()
        if do == "method":
            return {"value": self.handle(value, encoder)}
        if do == "special" and name == "__iter__" and type(value) in ITERATORS:
            return {"value": ["it", [encoder.encode(each) for each in value]]}
        return {"value": self.kept(value, encoder) if do == "construct" else encoder.encode(value)}

    def done(self, do: str, on: int, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Do one thing."""
        service = self.services.get(do)
        if service is None:
            raise ProtocolError(f"a question of the unknown kind {do!r:.40}")
        if do in WITHOUT_TARGET:
            return service(None, name, args, kwargs)
        target = self.own(on)
        self.permit(target, do, name)
        return service(target, name, args, kwargs)

    def at_work(self, _number: int) -> contextlib.AbstractContextManager[None]:
        """Surrounds code of this side that runs for the other."""
        return contextlib.nullcontext()

    def written(self) -> list[str]:
        """What this side's code wrote to its standard output and error since the last message."""
        return ["", ""]

    def show(self, output: str, errors: str) -> None:
        """What the other side's code wrote."""

    def bearable(self, error: BaseException) -> BaseException:
        """The error as it is raised here."""
        return error


def written_by(message: dict[str, Any]) -> tuple[str, str]:
    """What came with a message for standard output and error."""
    output, errors = field(message, "output", list, ["", ""])
    return exactly(str, output), exactly(str, errors)


def _get(target: Any, name: str, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
    return getattr(target, name)


def _set(target: Any, name: str, args: list[Any], _kwargs: dict[str, Any]) -> None:
    setattr(target, name, *args)


def _delete(target: Any, name: str, _args: list[Any], _kwargs: dict[str, Any]) -> None:
    delattr(target, name)


def _call(target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return (getattr(target, name) if name else target)(*args, **kwargs)


def _special(target: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    shortcut = SHORTCUTS.get(name)
    if shortcut is not None:
        return shortcut(target, *args)
    kind = type(target)
    found = next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)
    if found is None:
        raise TypeError(f"{kind.__name__!r} object has no {name}")
    bound = found.__get__(target, kind) if hasattr(type(found), "__get__") else found
    return bound(*args, **kwargs)


SHORTCUTS: Final[dict[str, Callable[..., Any]]] = {
    "__eq__": lambda one, other: one == other,
    "__ne__": lambda one, other: one != other,
    "__bool__": bool,
    "__hash__": hash,
    "__repr__": repr,
    "__str__": str,
}
SERVICES: Final[dict[str, Callable[[Any, str, list[Any], dict[str, Any]], Any]]] = {
    "get": _get,
    "set": _set,
    "del": _delete,
    "call": _call,
    "construct": _call,
    "special": _special,
    "dir": lambda target, _name, _args, _kwargs: dir(target),
    "method": _get,
    "vars": lambda target, _name, _args, _kwargs: vars(target),
    "entry": lambda target, name, _args, _kwargs: vars(target)[name],
    "reduce": lambda target, _name, _args, _kwargs: reduced(target),
    "copy": lambda target, _name, _args, _kwargs: copy.copy(target),
    "deepcopy": lambda target, _name, _args, _kwargs: copy.deepcopy(target),
}

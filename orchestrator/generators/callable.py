"""A plain function, sync or async, as a generator."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, cast

import attrs

from orchestrator.adapter_errors import GenerationError
from orchestrator.callables import is_async, missing_attributes, name_of_callable
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation, Generator, Request
from orchestrator.threads import call_in_thread

__all__ = ["CallableGenerator", "GeneratorCall", "GeneratorLike", "as_generator"]

Answer: TypeAlias = Generation | Candidate | str | Mapping[str, str]
"""One text, files (relative POSIX path to text), a candidate, or a generation that also says what it used."""

GeneratorCall: TypeAlias = Callable[[Request], Answer | Awaitable[Answer]]
GeneratorLike: TypeAlias = Generator | GeneratorCall


@attrs.define(eq=False)
class CallableGenerator:
    """Asks a callable for candidates.

    An async one is awaited where it is called; a sync one runs in a daemon thread, which cannot be killed:
    when its time is over it is abandoned and its late answer is dropped.
    """

    call: GeneratorCall
    name: str = ""
    """Identifies it in records and over a resume; by default the callable's own qualified name."""
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True)
    isolation: str = attrs.field(default="none", init=False)
    _is_async: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._is_async = is_async(self.call)
        self.name = self.name or name_of_callable(self.call)

    async def generate(self, request: Request) -> Generation:
        """The callable's answer; GenerationError when it is of no kind that can be a candidate."""
        if self._is_async:
            answer = await self.call(request)  # type: ignore[misc]  # an awaitable
        else:
            returned = await call_in_thread(self.call, request)
            answer = await returned if inspect.isawaitable(returned) else returned
        return answer if type(answer) is Generation else _generation(answer)


def as_generator(generator: GeneratorLike) -> Generator:
    """A generator as it is, or a callable made one; TypeError says what to change in anything else."""
    if isinstance(generator, type):
        raise TypeError(f"a generator must be an instance: write {generator.__name__}(...)")
    if hasattr(generator, "generate"):
        missing = missing_attributes(generator, ("name", "isolation", "max_prompt_characters"))
        if missing:
            raise TypeError(f"{type(generator).__name__} has generate() but lacks {missing}: add what Generator asks")
        if not inspect.iscoroutinefunction(generator.generate):
            raise TypeError(f"{type(generator).__name__}.generate must be written as `async def`")
        return cast(Generator, generator)
    if callable(generator):
        return CallableGenerator(generator)
    raise TypeError(f"{type(generator).__name__} is no generator: pass a Generator or a callable that takes a Request")


def _generation(answer: object) -> Generation:
    if type(answer) is str:
        return Generation(candidate=Candidate(answer))
    match answer:
        case Generation():
            return answer
        case Candidate():
            return Generation(candidate=answer)
        case str():
            return Generation(candidate=Candidate(answer))
        case Mapping() if all(isinstance(part, str) for pair in answer.items() for part in pair):
            return Generation(candidate=Candidate(files=answer))
    raise GenerationError(
        f"the callable returned {type(answer).__name__}: "
        "return a str, a mapping of path to text, a Candidate or a Generation"
    )

"""A provider, a tool, a verifier and a cancellation that do what a script says, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from orchestrator.agent.ports import CallRequest, ProviderCallError, Reply, ToolCall, ToolOutcome, TurnRequest
from orchestrator.agent.verifiers import VerifyRequest
from orchestrator.harness.verification import Verification
from orchestrator.jsondata import JSON
from orchestrator.testing.scripted import AfterLast, Script, ScriptEndError, in_order

__all__ = ["ManualCancellation", "ScriptedProvider", "ScriptedTool", "ScriptedVerifier"]

OBJECT: Mapping[str, JSON] = {"type": "object"}


@attrs.define(eq=False)
class ScriptedProvider:
    """Gives the first call of a run its first reply, the second call the second, and so on.

    A reply is a text, a ToolCall or several, a Reply, an exception to raise, or a plain or async callable that makes
    any of these from the TurnRequest. Anything else is returned as it is, to see what the engine makes of it. After
    the last one, `repeat` gives that one again and `raise` (the default) fails for good.

    >>> from orchestrator.agent import Agent
    >>> provider = ScriptedProvider([ToolCall(id="1", tool="add", arguments={"a": 1, "b": 2}), "It is 3."])
    >>> report = Agent(providers={"scripted": provider}, tools=[ScriptedTool("add", ["3"])]).run("What is 1 + 2?")
    >>> report.status, report.answer, report.turns, report.tool_calls
    ('completed', 'It is 3.', 2, 1)
    """

    replies: tuple[object, ...] = attrs.field(converter=in_order)
    after: AfterLast = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "repeat")))
    name: str = attrs.field(default="scripted", kw_only=True)
    priority: int = attrs.field(default=100, kw_only=True)
    requests: list[TurnRequest] = attrs.field(factory=list, init=False)
    """What it was asked, in order, all runs together."""
    _script: Script[TurnRequest] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = Script(self.replies, self.after)

    async def complete(self, request: TurnRequest) -> Reply:
        """The script's next reply for the request's run."""
        self.requests.append(request)
        try:
            return cast(Reply, as_reply(await self._script.next(request)))
        except ScriptEndError as end:
            raise ProviderCallError(str(end)) from None


@attrs.define(eq=False)
class ScriptedTool:
    """Gives the first call of a run its first outcome, the second call the second, and so on.

    An outcome is a text (a success), a ToolOutcome, an exception to raise, or a plain or async callable that makes
    any of these from the CallRequest. Anything else is returned as it is. The last one is repeated.
    """

    name: str
    outcomes: tuple[object, ...] = attrs.field(default=("ok",), converter=in_order)
    description: str = attrs.field(default="", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(default=OBJECT, kw_only=True)
    is_idempotent: bool = attrs.field(default=False, kw_only=True)
    requests: list[CallRequest] = attrs.field(factory=list, init=False)
    """What it was asked, in order, all runs together."""
    _script: Script[CallRequest] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = Script(self.outcomes, "repeat")

    async def call(self, request: CallRequest) -> ToolOutcome:
        """The script's next outcome for the request's run."""
        self.requests.append(request)
        given = await self._script.next(request)
        return ToolOutcome(is_success=True, output=given) if isinstance(given, str) else cast(ToolOutcome, given)


@attrs.define(eq=False)
class ScriptedVerifier:
    """Gives (passed, total) by (passed, total), a Verification, or raises; the last one is repeated."""

    verdicts: tuple[object, ...] = attrs.field(converter=in_order)
    requests: list[VerifyRequest] = attrs.field(factory=list, init=False)
    _script: Script[VerifyRequest] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = Script(self.verdicts, "repeat")

    async def verify(self, request: VerifyRequest) -> Verification:
        """The script's next verdict for the request's run."""
        self.requests.append(request)
        given = await self._script.next(request)
        return Verification(*given) if isinstance(given, tuple) else cast(Verification, given)


@attrs.define(eq=False)
class ManualCancellation:
    """Says that a run should stop once it is told to, and knows which tools run."""

    state: str = "none"
    """none, graceful or immediate; set it whenever the run is to see it."""
    running: dict[str, str] = attrs.field(factory=dict, init=False)
    """Names of the tools that run, by call id."""
    started: list[str] = attrs.field(factory=list, init=False)
    """Call ids, in order."""

    def tool_started(self, call_id: str, name: str) -> None:
        """A tool runs."""
        self.running[call_id] = name
        self.started.append(call_id)

    def tool_ended(self, call_id: str) -> None:
        """It does no longer."""
        self.running.pop(call_id, None)


def as_reply(given: object) -> object:
    """The short forms of a reply as a Reply; anything else as it is."""
    match given:
        case str():
            return Reply(blocks=({"type": "text", "text": given},))
        case ToolCall():
            return Reply(calls=(given,))
        case Sequence() if given and all(isinstance(each, ToolCall) for each in given):
            return Reply(calls=tuple(given))
    return given

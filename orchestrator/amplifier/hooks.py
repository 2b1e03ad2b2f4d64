"""Our gates and events, put to the hooks of Amplifier: one mechanism, whoever asks."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any

import attrs

from orchestrator.amplifier.answers import Wish, action_of, changes, refusal, wishes
from orchestrator.amplifier.awaiting import awaited
from orchestrator.amplifier.exchange import Exchange, Injection
from orchestrator.amplifier.names import DROPPED, GATES, LIVES, MODULE_ID, wire_name
from orchestrator.amplifier.payloads import payload_of
from orchestrator.amplifier.plainness import field_of, plain_object, plain_text
from orchestrator.jsondata import JSON
from orchestrator_events.agent import CancelRequested
from orchestrator_events.bus import Bus, Question
from orchestrator_events.decision import AskUser, Decision, Inject
from orchestrator_events.event import Gate
from orchestrator_events.patience import settled
from orchestrator_events.record import Record

__all__ = ["Hooks"]

SUBSCRIBER = "amplifier hooks"
DEFAULT_QUESTION = "Allow this operation?"
TELLING_S = 60.0
"""What hooks may take to hear of one fact, seconds: enough to name a session, and no end of a run waits for more."""

logger = logging.getLogger("orchestrator.amplifier")


@attrs.define(eq=False)
class Hooks:
    """The hook registry of one execution, as a subscriber that answers every gate and hears every event.

    `registry` is anything with `emit(name, payload)`, plain or async; without one nobody is told.
    """

    registry: Any
    exchange: Exchange
    waiting: deque[tuple[str, dict[str, JSON]]] = attrs.field(init=False, factory=deque)
    """Live events that were told from where nothing can be awaited, in order."""
    telling: asyncio.Lock = attrs.field(init=False, factory=asyncio.Lock)
    teller: asyncio.Task[None] | None = attrs.field(init=False, default=None)
    is_cancel_told: bool = attrs.field(init=False, default=False)

    def join(self, bus: Bus, seconds: float | None) -> None:
        """Subscribe to everything. People may be asked at a gate: only the run's own time limit bounds one."""
        for gate in GATES:
            bus.answer(gate, self.decide, name=SUBSCRIBER, seconds=seconds)
        bus.subscribe(self.observe, name=SUBSCRIBER, seconds=TELLING_S if seconds is None else min(seconds, TELLING_S))
        bus.subscribe(self.overhear, *LIVES, name=SUBSCRIBER)

    async def decide(self, question: Question) -> tuple[Decision, ...]:
        """Put a gate to the hooks; what they answer, as decisions."""
        gate = question.gate
        sent = payload_of(gate, question.run_id, self.exchange)
        name = wire_name(gate)
        result = await self.emit(name, sent)
        match action_of(result):
            case "continue" | "modify":
                await self.show(result, name)
                return tuple(self.changed(gate, sent, result))
            case "inject_context":
                await self.show(result, name)
                injected = [await self.injected(wish, name) for wish in wishes(result)]
                return (*self.changed(gate, sent, result), *(each for each in injected if each is not None))
            case "ask_user":
                return (self.question(result, name),)
            case _:
                await self.show(result, name)
                return (refusal(result, name),)

    async def observe(self, record: Record) -> None:
        """Tell the hooks what happened; nothing they answer can change it."""
        event = record.event
        if isinstance(event, CancelRequested):
            await self.call_back()
        name = wire_name(event)
        await self.show(await self.emit(name, payload_of(event, record.run_id, self.exchange)), name)

    def overhear(self, record: Record) -> None:
        """Tell the hooks of something under way, in order, as soon as they can be awaited."""
        event = record.event
        self.waiting.append((wire_name(event), payload_of(event, record.run_id, self.exchange)))
        if self.teller is None or self.teller.done():
            self.teller = asyncio.get_running_loop().create_task(self.tell())

    async def tell(self) -> None:
        """Emit what is waiting; one at a time, whoever asks for it."""
        async with self.telling:
            while self.waiting:
                name, payload = self.waiting.popleft()
                try:
                    await settled(self.emit_now(name, payload), TELLING_S)
                except Exception as error:  # noqa: BLE001 -- no observer's error may reach the run
                    logger.warning("hooks failed at %s: %s: %s", name, type(error).__name__, error)

    def close(self) -> None:
        """Tell nothing more: whatever was told live is told by now, for the closing events came after it."""
        if self.teller is not None:
            self.teller.cancel()

    async def emit(self, name: str, payload: dict[str, JSON]) -> object:
        """Emit one event after everything that waits; what the hooks answered."""
        if self.waiting:
            await self.catch_up()
        return await self.emit_now(name, payload)

    async def catch_up(self) -> None:
        """Emit what is waiting; where that was waited for in vain, the closing events do not wait for it again."""
        try:
            await self.tell()
        except asyncio.CancelledError:
            self.waiting.clear()
            self.close()
            raise

    async def emit_now(self, name: str, payload: dict[str, JSON]) -> object:
        """Emit one event; None where nobody listens."""
        emit = getattr(self.registry, "emit", None)
        if not callable(emit):
            return None
        # Plain, or the registry raises; a copy, so that what a hook changes in it is not mistaken for what was sent.
        return await awaited(emit(name, plain_object(payload)))

    def changed(self, gate: Gate, sent: dict[str, JSON], result: object) -> list[Decision]:
        """What the hooks changed, if anything."""
        change = changes(gate, sent, result)
        return [] if change is None else [change]

    async def injected(self, wish: Wish, name: str) -> Inject | None:
        """One injection as a decision; None where the kernel refuses it for its size.

        The kernel measures an ephemeral one here; a durable one is stored, and measured, when its place has come.
        """
        if wish.is_ephemeral and self.exchange.can_process:
            try:
                await self.exchange.process(hook_result(wish), name, wish.hook_name)
            except ValueError as error:
                await self.drop(wish.text, wish.role, wish.hook_name, error)
                return None
        if not wish.is_ephemeral:
            self.exchange.durable.append(Injection(wish.text, wish.role, wish.hook_name, name))
        return Inject(wish.text, wish.role, is_ephemeral=wish.is_ephemeral, is_appended=wish.is_appended)

    async def drop(self, text: str, role: str, hook_name: str, error: ValueError) -> None:
        """Say that an injection was dropped, and why; the run goes on without it."""
        logger.warning("%s: injection of %s dropped: %s", MODULE_ID, hook_name, error)
        reason = plain_text(str(error))
        await self.emit(DROPPED, {"hook_name": hook_name, "role": role, "length": len(text), "reason": reason})

    def question(self, result: object, name: str) -> Decision:
        """A hook wants the user asked; the answer itself is kept for the approver."""
        prompt = field_of(result, "approval_prompt") or field_of(result, "reason")
        prompt = plain_text(prompt) if isinstance(prompt, str) and prompt else DEFAULT_QUESTION
        self.exchange.questions.setdefault(prompt, deque()).append((result, name))
        return AskUser(prompt)

    async def show(self, result: object, name: str) -> None:
        """Have the kernel show the user what a hook has to say to him."""
        message = field_of(result, "user_message")
        if not (isinstance(message, str) and message and self.exchange.can_process):
            return
        from amplifier_core.models import HookResult

        shown = HookResult(action="continue", user_message=message)
        for name_of_field in ("user_message_level", "user_message_source"):
            if isinstance(value := field_of(result, name_of_field), str):
                setattr(shown, name_of_field, value)
        try:
            await self.exchange.process(shown, name)
        except Exception as error:  # noqa: BLE001 -- a display that fails is no reason to stop
            logger.warning("a hook's message could not be shown: %s: %s", type(error).__name__, error)

    async def call_back(self) -> None:
        """Run the callbacks of the kernel's token, which the kernel leaves to the orchestrator; once."""
        trigger = getattr(getattr(self.exchange.coordinator, "cancellation", None), "trigger_callbacks", None)
        if callable(trigger) and not self.is_cancel_told:
            self.is_cancel_told = True
            await awaited(trigger())


def hook_result(wish: Wish | Injection) -> Any:
    """One injection as the kernel takes it."""
    from amplifier_core.models import ContextInjection, HookResult

    is_ephemeral = isinstance(wish, Wish) and wish.is_ephemeral
    injection = ContextInjection(
        content=wish.text,
        role=wish.role,
        ephemeral=is_ephemeral,
        append_to_last_tool_result=isinstance(wish, Wish) and wish.is_appended,
        hook_name=wish.hook_name,
        event=wish.event if isinstance(wish, Injection) else "",
    )
    return HookResult(action="inject_context", context_injections=[injection])

"""Gates: who is asked, in which order, and what counts as a no."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs
import pytest

from orchestrator_events import (
    Budget,
    Bus,
    Clock,
    Decision,
    DecisionTaken,
    Deny,
    EvaluationRequested,
    Gate,
    GenerationRequested,
    Inject,
    Ledger,
    Modify,
    Proceed,
    Question,
    RefinementRequested,
    Reservation,
    Ruling,
    guard_budget,
)
from orchestrator_events import bus as bus_module
from orchestrator_events.blob import Blob

Ask = Callable[..., Question]
YES = Proceed()


def ask(bus: Bus, question: Question) -> Ruling:
    """Ask in a loop of its own."""
    return asyncio.run(bus.ask(question))


def test_nobody_asked_is_a_yes(question: Ask) -> None:
    """A gate without responders and guard lets the act happen."""
    assert ask(Bus(), question()) == Ruling()


def test_responders_sync_and_async_are_asked_in_order(question: Ask) -> None:
    """Priority first, then order of connection; each with the gate as the driver put it."""
    asked: list[tuple[str, str]] = []

    def first(question: Question) -> Decision:
        assert isinstance(question.gate, GenerationRequested)
        asked.append(("first", question.gate.prompt))
        return Modify({"prompt": "changed"})

    async def second(question: Question) -> Decision:
        assert isinstance(question.gate, GenerationRequested)
        await asyncio.sleep(0)
        asked.append(("second", question.gate.prompt))
        return Inject("more", "user")

    bus = Bus()
    bus.answer(GenerationRequested, second, priority=1, name="second")
    bus.answer(GenerationRequested, first, name="first")
    ruling = ask(bus, question())
    assert asked == [("first", "write"), ("second", "write")]
    assert ruling == Ruling(
        changes={"prompt": "changed"},
        injections=(Inject("more", "user"),),
        taken=(DecisionTaken("first", "modify", "prompt"), DecisionTaken("second", "inject", "more")),
    )


def test_a_responder_that_raises_denies(question: Ask) -> None:
    """What cannot answer does not let anything through; the others are asked all the same."""

    def broken(_question: Question) -> Decision:
        raise OSError("rules not readable")

    def other(question: Question) -> Decision:
        asked.append(question.run_id)
        return YES

    asked: list[str] = []
    bus = Bus()
    bus.answer(GenerationRequested, broken, name="rules")
    bus.answer(GenerationRequested, other)
    reason = "rules failed at generation:requested: OSError: rules not readable"
    assert ask(bus, question()).deny == Deny(reason)
    assert asked == ["r1"]


def test_a_responder_that_is_silent_denies(question: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past its limit an async responder is cancelled, and that is a no."""
    monkeypatch.setattr(bus_module, "RESPONDER_LIMIT_S", 0.01)

    async def silent(_question: Question) -> Decision:
        await asyncio.Event().wait()
        return YES

    bus = Bus()
    bus.answer(GenerationRequested, silent, name="silent")
    reason = "silent failed at generation:requested: TimeoutError: no end within 0.01 s"
    assert ask(bus, question()).deny == Deny(reason)


def test_a_responders_limit_is_its_own(question: Ask) -> None:
    """A host whose responders ask people gives them the time; another gives less than the usual 30 s."""

    async def silent(_question: Question) -> Decision:
        await asyncio.Event().wait()
        return YES

    async def patient(_question: Question) -> Decision:
        await asyncio.sleep(0)
        return Inject("thought it over")

    bus = Bus()
    bus.answer(GenerationRequested, patient, name="patient", seconds=None)
    bus.answer(GenerationRequested, silent, name="silent", seconds=0.01)
    ruling = ask(bus, question())
    reason = "silent failed at generation:requested: TimeoutError: no end within 0.01 s"
    assert (ruling.deny, ruling.injections) == (Deny(reason), (Inject("thought it over"),))


def test_a_responder_may_take_several_decisions(question: Ask) -> None:
    """Each stays apart, in order, under the responder's name; an empty tuple is a plain yes."""
    bus = Bus()
    bus.answer(GenerationRequested, lambda _: (Inject("a", "user"), Modify({"max_tokens": 5}), Inject("b")), name="r")
    bus.answer(GenerationRequested, lambda _: ())
    ruling = ask(bus, question())
    assert ruling == Ruling(
        injections=(Inject("a", "user"), Inject("b")),
        changes={"max_tokens": 5},
        taken=(
            DecisionTaken("r", "inject", "a"),
            DecisionTaken("r", "modify", "max_tokens"),
            DecisionTaken("r", "inject", "b"),
        ),
    )


def test_one_unlawful_decision_among_several_denies(question: Ask) -> None:
    """None in a tuple is no yes either."""
    bus = Bus()
    bus.answer(GenerationRequested, lambda _: (YES, None), name="r")  # type: ignore[arg-type,return-value]
    deny = ask(bus, question()).deny
    assert deny is not None
    assert deny.reason.startswith("r answered None at generation:requested")


def test_a_responder_that_returns_nothing_denies(question: Ask) -> None:
    """A forgotten return is no yes, at a plain connection neither."""
    bus = Bus()
    bus.signal("generation:requested").connect(lambda *_sender, **_named: None, weak=False)
    ruling = ask(bus, question())
    assert ruling.deny is not None
    assert "answered None at generation:requested" in ruling.deny.reason


def test_a_closed_responder_is_not_asked(question: Ask) -> None:
    """A subscription to a gate ends like any other."""
    bus = Bus()
    with bus.answer(GenerationRequested, lambda _: Deny("no")):
        inside = ask(bus, question())
    assert (inside.deny, ask(bus, question())) == (Deny("no"), Ruling())


def test_the_guard_is_asked_last_about_the_request_as_modified(question: Ask) -> None:
    """It sees every change, and its reservation is in the ruling."""
    order: list[tuple[str, object]] = []
    held = Reservation(key="k1", input_tokens=3)

    def guard(gate: Gate, _: Ledger) -> Reservation:
        assert isinstance(gate, GenerationRequested)
        order.append(("guard", (gate.prompt, gate.max_tokens)))
        return held

    bus = Bus(guard=guard)
    bus.answer(GenerationRequested, lambda _: Modify({"prompt": "longer"}), name="a", priority=1000)
    bus.answer(GenerationRequested, lambda _: Modify({"max_tokens": 50}), name="b")
    ruling = ask(bus, question())
    assert order == [("guard", ("longer", 50))]
    assert (ruling.changes, ruling.reservation) == ({"prompt": "longer", "max_tokens": 50}, held)


def test_the_guard_is_not_asked_about_what_is_denied(question: Ask) -> None:
    """Nothing is reserved for a call that will not be made."""
    asked: list[Gate] = []

    def guard(gate: Gate, _: Ledger) -> Reservation:
        asked.append(gate)
        return Reservation(key="k1")

    bus = Bus(guard=guard)
    bus.answer(GenerationRequested, lambda _: Deny("no"))
    ruling = ask(bus, question())
    assert (asked, ruling.deny, ruling.reservation) == ([], Deny("no"), None)


def test_a_guard_that_breaks_denies(question: Ask) -> None:
    """No call gets through unreserved because the guard is broken."""

    def guard(_: Gate, __: Ledger) -> None:
        raise ZeroDivisionError("sum")

    ruling = ask(Bus(guard=guard), question())
    assert ruling.deny == Deny("the budget guard failed: ZeroDivisionError: sum")


def test_the_guard_sees_injected_text(question: Ask) -> None:
    """What a subscriber injects is read by the generator, so it is part of what is reserved."""
    seen: list[str] = []

    def guard(gate: Gate, _: Ledger) -> None:
        assert isinstance(gate, GenerationRequested)
        seen.append(gate.prompt)

    bus = Bus(guard=guard)
    bus.answer(GenerationRequested, lambda _: Inject("mind the gap", role="user"))
    ruling = ask(bus, question())
    assert seen == [ruling.gate.prompt if isinstance(ruling.gate, GenerationRequested) else ""]
    assert seen[0].endswith("## Added (user)\n\nmind the gap\n")


def test_the_budget_guard_reserves_for_the_modified_request(question: Ask, clock: Clock) -> None:
    """The prompt and max_tokens that subscribers settled on are what is held."""
    ledger = Ledger(Budget(tokens=1000), clock)
    bus = Bus(guard=guard_budget)
    bus.answer(GenerationRequested, lambda _: Modify({"prompt": "x" * 400, "max_tokens": 200}))
    ruling = ask(bus, question(account=ledger))
    held = Reservation(key="k1", input_tokens=100, output_tokens=200)
    assert (ruling.reservation, ledger.holds) == (held, {"k1": held})


def test_the_budget_guard_denies_with_the_limit(question: Ask, clock: Clock) -> None:
    """A denial of the budget names its limit, so that the run ends as exhausted."""
    ledger = Ledger(Budget(attempts=2), clock, attempts=2)
    bus = Bus(guard=guard_budget)
    request = question(account=ledger)
    third = attrs.evolve(request, gate=attrs.evolve(request.gate, attempt=3))  # type: ignore[call-arg]
    refinement = attrs.evolve(request, gate=RefinementRequested(attempt=3))
    denial = Deny("2 of 2 attempts used", "attempts")
    assert (ask(bus, third).deny, ask(bus, refinement).deny) == (denial, denial)


def test_the_budget_guard_asks_nothing_of_an_evaluation(question: Ask, clock: Clock) -> None:
    """A candidate that was paid for may be judged, whatever is left."""
    ledger = Ledger(Budget(tokens=10), clock, input_tokens=10)
    gate = EvaluationRequested(attempt=1, candidate=Blob("x"))
    assert ask(Bus(guard=guard_budget), question(gate, ledger)) == Ruling()


def test_no_subscriber_can_lift_the_attempt_limit(question: Ask, clock: Clock) -> None:
    """The attempt's number is not modifiable: what would pass as attempt 1 is denied."""
    bus = Bus(guard=guard_budget)
    bus.answer(GenerationRequested, lambda _: Modify({"attempt": 1}), name="sly")
    ruling = ask(bus, question(account=Ledger(Budget(attempts=2), clock)))
    assert ruling.deny is not None
    assert ruling.deny.reason.startswith("sly may not change 'attempt'")


def test_a_negative_max_tokens_is_denied(question: Ask, clock: Clock) -> None:
    """It would be a hold below zero and let others overspend."""
    bus = Bus(guard=guard_budget)
    bus.answer(GenerationRequested, lambda _: Modify({"max_tokens": -1000}))
    ruling = ask(bus, question(account=Ledger(Budget(tokens=100), clock)))
    assert ruling.deny == Deny("the budget guard failed: ValueError: max_tokens must be at least 1 or None, not -1000")


def test_max_tokens_follows_from_changed_parameters(question: Ask) -> None:
    """What is reserved is what the generator is sent; parameters that are no JSON object are denied."""
    bus = Bus()
    subscription = bus.answer(GenerationRequested, lambda _: Modify({"parameters": '{"max_tokens": 7}'}))
    bus.guard = lambda _, __: None
    ruling = ask(bus, question())
    assert isinstance(ruling.gate, GenerationRequested)
    assert ruling.gate.max_tokens == 7
    subscription.close()
    bus.answer(GenerationRequested, lambda _: Modify({"parameters": "[1]"}))
    denied = ask(bus, question()).deny
    assert denied is not None
    assert "parameters must be a JSON object" in denied.reason

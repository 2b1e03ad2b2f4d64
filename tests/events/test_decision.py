"""Decisions: how answers to a gate fold into one ruling."""

from __future__ import annotations

from itertools import permutations

import pytest

from orchestrator_events import (
    AskUser,
    Decision,
    DecisionTaken,
    Deny,
    EvaluationRequested,
    GenerationRequested,
    Inject,
    Modify,
    Proceed,
    Ruling,
)
from orchestrator_events.blob import Blob
from orchestrator_events.decision import fold, lawful

REQUEST = GenerationRequested(attempt=1, prompt="write", parameters="{}", max_tokens=100, key="k1")


def test_plain_yeses_leave_nothing_to_record() -> None:
    """Proceed is the silence of a gate: no decision is taken."""
    assert fold([("one", Proceed()), ("other", Proceed())]) == Ruling()


def test_every_answer_is_in_the_ruling_whatever_the_order() -> None:
    """Nothing is lost beside something stronger: a denial, a question, a text and a change are all there."""
    answers: list[tuple[str, Decision]] = [
        ("a", Modify({"max_tokens": 5})),
        ("b", Inject("be brief")),
        ("c", AskUser("sure?")),
        ("d", Deny("no")),
    ]
    for order in permutations(answers):
        ruling = fold(order)
        expected = Ruling(Deny("no"), (AskUser("sure?"),), (Inject("be brief"),), {"max_tokens": 5}, ruling.taken)
        assert ruling == expected
        assert [taken.subscriber for taken in ruling.taken] == [name for name, _ in order]


def test_the_first_denial_is_the_one_that_counts() -> None:
    """A second denial is recorded and changes nothing."""
    ruling = fold([("a", Deny("first", "tokens")), ("b", Deny("second"))])
    assert (ruling.deny, len(ruling.taken)) == (Deny("first", "tokens"), 2)


def test_injections_stay_apart_in_order_with_their_roles() -> None:
    """Two texts are two texts, each with its role."""
    ruling = fold([("a", Inject("one")), ("b", Inject("two", "user")), ("c", Inject("one"))])
    assert ruling.injections == (Inject("one", "system"), Inject("two", "user"), Inject("one", "system"))


def test_a_later_change_of_the_same_field_wins_and_others_stay() -> None:
    """Modifications add up field by field, in order of asking."""
    ruling = fold([("a", Modify({"prompt": "x", "max_tokens": 5})), ("b", Modify({"max_tokens": 9}))])
    assert ruling.changes == {"prompt": "x", "max_tokens": 9}


def test_what_is_recorded_says_who_did_what() -> None:
    """Each decision but a plain yes leaves its author, its kind and its content."""
    ruling = fold([("a", Modify({"prompt": "x", "max_tokens": 5})), ("b", AskUser("sure?"))])
    assert ruling.taken == (
        DecisionTaken("a", "modify", "max_tokens, prompt"),
        DecisionTaken("b", "ask_user", "sure?"),
    )


@pytest.mark.parametrize(
    "decision", [Proceed(), Inject("x"), AskUser("x"), Deny("x"), Modify({"prompt": "x", "max_tokens": None})]
)
def test_lawful_decisions_pass_as_they_are(decision: Decision) -> None:
    """A decision that a gate takes is not touched."""
    assert lawful(decision, REQUEST, "a") is decision


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "a answered None at generation:requested: return Proceed() for a plain yes"),
        (True, "a answered True at generation:requested: return Proceed() for a plain yes"),
        (
            Modify({"attempt": 1}),
            "a may not change 'attempt' at generation:requested; modifiable: prompt, parameters, max_tokens",
        ),
        (
            Modify({"promt": "x"}),
            "a may not change 'promt' at generation:requested; modifiable: prompt, parameters, max_tokens",
        ),
        (Modify({"prompt": 7}), "a gave 'prompt' at generation:requested a value of type int"),
        (Modify({"max_tokens": True}), "a gave 'max_tokens' at generation:requested a value of type bool"),
    ],
)
def test_an_unlawful_answer_is_a_denial_that_names_the_subscriber(answer: object, reason: str) -> None:
    """No answer, an unknown field, the attempt's number or another type lets nothing through."""
    assert lawful(answer, REQUEST, "a") == Deny(reason)


def test_a_candidate_cannot_be_modified() -> None:
    """What is judged is what was generated: the gate before an evaluation takes no change."""
    gate = EvaluationRequested(attempt=1, candidate=Blob("x"))
    answer = lawful(Modify({"candidate": Blob("y")}), gate, "a")
    assert answer == Deny("a may not change 'candidate' at evaluation:requested; modifiable: nothing")

"""Routing: contract 5's examples, first match wins, and more risk never means less care."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from orchestrator.plan.plan import Step
from orchestrator.plan.policyfiles import PolicyError, default_policy, load_policy, read_policy
from orchestrator.plan.routing import (
    STRENGTH,
    Mode,
    Policy,
    ReviewKind,
    Route,
    Situation,
    names_risk,
    situation_of,
)
from orchestrator.plan.vocabulary import Risk, TaskType

DEFAULT = default_policy()

SITUATIONS = some.builds(
    Situation,
    risk_level=some.sampled_from(Risk),
    task_type=some.none() | some.sampled_from(TaskType),
    role=some.sampled_from(("Implementer", "Designer", "")),
    failure_count=some.integers(0, 5),
    is_ambiguous=some.booleans(),
    doc_trigger=some.sampled_from(("", "README")),
)
ROWS = some.fixed_dictionaries(
    {
        "if": some.sampled_from(
            (
                "risk_level == high",
                "risk_level == low",
                "risk_level in [low, medium]",
                "risk_level >= medium",
                "risk_level != critical",
                "task_type == ux",
                "ambiguous",
                "doc_trigger",
                "role == Implementer",
                "risk_level == critical and task_type == ux",
                "not ambiguous and risk_level == medium",
            )
        ),
        "then": some.fixed_dictionaries(
            {
                "primary": some.sampled_from(("A", "B", "C")),
                "secondary": some.just("S"),
                "mode": some.sampled_from(tuple(map(str, Mode))),
                "require": some.lists(some.sampled_from(("qa", "security_agent", "manual_approval")), unique=True),
            }
        ),
    }
)


def policy(*rows: dict[str, Any], **more: Any) -> Policy:
    """A policy in the form of rules."""
    named = [{"name": f"r{index}", **row} for index, row in enumerate(rows)]
    return read_policy({"routing_rules": named, "defaults": {"primary": "Default"}, **more}, "policy")


def at(risk: Risk, **fields: Any) -> Situation:
    """A situation of this risk."""
    return Situation(risk_level=risk, **fields)


def test_high_risk() -> None:
    """Contract 5: "risk_level high → primary Claude, secondary Codex (GPT), reviewer enforces security checklist"."""
    assert DEFAULT.route(at(Risk.HIGH)) == Route(
        rule="high-risk",
        reason="Rule high-risk: high risk, so the reviewer enforces the security checklist.",
        primary="Claude",
        secondary="Codex (GPT)",
        reviewer="Reviewer",
        mode=Mode.SINGLE,
        reviews=(ReviewKind.SECURITY,),
        escalation="StrongReasoningModel",
    )


def test_ux() -> None:
    """Contract 5: "UX tasks → primary Gemini"."""
    route = DEFAULT.route(at(Risk.LOW, task_type=TaskType.UX))
    assert (route.rule, route.primary, route.mode) == ("ux", "Gemini", Mode.SINGLE)


def test_implementation_drafts() -> None:
    """Contract 5: "Implementation drafts → primary GLM, post-pass Codex (GPT) refactor"."""
    route = DEFAULT.route(at(Risk.LOW, task_type=TaskType.IMPLEMENTATION))
    assert (route.primary, route.secondary, route.mode) == ("GLM", "Codex (GPT)", Mode.POST_PASS)


@pytest.mark.parametrize("risk", Risk)
def test_ambiguous(risk: Risk) -> None:
    """Contract 5: "Ambiguous tasks → dual-run Claude + Codex (GPT), compare outputs", whatever the risk."""
    route = DEFAULT.route(at(risk, is_ambiguous=True))
    assert (route.primary, route.secondary, route.mode) == ("Claude", "Codex (GPT)", Mode.DUAL_RUN)
    assert (ReviewKind.SECURITY in route.reviews) is risk.needs_security


def test_escalation() -> None:
    """Contract 5: "If implementer fails twice, escalate to StrongReasoningModel for refactor"."""
    once, twice = (
        DEFAULT.route(at(Risk.LOW, task_type=TaskType.IMPLEMENTATION, failure_count=count)) for count in (1, 2)
    )
    assert (once.primary, once.is_escalated) == ("GLM", False)
    assert (twice.primary, twice.secondary, twice.mode, twice.is_escalated) == (
        "StrongReasoningModel", "", Mode.SINGLE, True,
    )  # fmt: skip
    assert twice.reviews == once.reviews
    assert twice.reason.endswith("Failed 2 times (escalation): StrongReasoningModel refactors.")


def test_every_model_is_named() -> None:
    """A consumer can ask for all the names to map."""
    assert DEFAULT.models == {"Claude", "Codex (GPT)", "GLM", "Gemini", "Reviewer", "StrongReasoningModel"}


@pytest.mark.parametrize("kind", [None, *TaskType])
@pytest.mark.parametrize("is_ambiguous", [False, True])
def test_critical_is_treated_as_high(kind: TaskType | None, is_ambiguous: bool) -> None:
    """A critical step without a row of its own gets what a high one gets, and the route says so."""
    high, critical = (
        DEFAULT.route(at(risk, task_type=kind, is_ambiguous=is_ambiguous)) for risk in (Risk.HIGH, Risk.CRITICAL)
    )
    assert attrs.evolve(critical, reason=high.reason) == high
    if not is_ambiguous:
        assert critical.reason.endswith("No rule speaks of critical risk here, so it is treated as high.")


def test_a_relaxation_is_not_inherited() -> None:
    """A row for low risk is not the treatment of higher ones: they get the default."""
    made = policy({"if": "risk_level in [low, medium]", "then": {"primary": "Cheap"}})
    found = [made.route(at(risk)).primary for risk in Risk]
    assert found == ["Cheap", "Cheap", "Default", "Default"]


def test_a_level_that_no_rule_names_is_never_treated_more_weakly_than_the_next_lower() -> None:
    """A dual run for everything up to high holds for critical risk, too, though the default is a single one."""
    made = policy(
        {"if": "risk_level in [low, medium, high]", "then": {"primary": "A", "secondary": "B", "mode": "dual-run"}}
    )
    assert [made.route(at(risk)).mode for risk in Risk] == [Mode.DUAL_RUN] * 4


def test_low_risk_is_a_next_lower_level_too() -> None:
    """A dual run for low risk holds for every higher one that no rule names, and their routes say so."""
    then = {"primary": "A", "secondary": "B", "mode": "dual-run"}
    made = policy({"if": "risk_level == low and task_type != ux", "then": then})
    found = [made.route(at(risk)) for risk in Risk]
    assert [(each.mode, each.primary) for each in found] == [(Mode.DUAL_RUN, "A")] * 4
    assert found[1].reason.endswith("No rule speaks of medium risk here, so it is treated as low.")
    assert made.route(at(Risk.MEDIUM, task_type=TaskType.UX)).primary == "Default"


def test_first_match_wins() -> None:
    """Rules are tried in order."""
    made = policy(
        {"if": "task_type == ux", "then": {"primary": "First"}}, {"if": "ambiguous", "then": {"primary": "Second"}}
    )
    both = at(Risk.LOW, task_type=TaskType.UX, is_ambiguous=True)
    assert [made.route(both).primary, made.route(at(Risk.LOW, is_ambiguous=True)).primary] == ["First", "Second"]


@settings(deadline=None)
@given(SITUATIONS, some.lists(ROWS, max_size=5))
def test_every_situation_has_a_route(situation: Situation, rows: list[dict[str, Any]]) -> None:
    """Whatever the policy, there is a route; its reviews add up with the risk, and no level that no rule names is
    treated more weakly than the next lower one."""
    for made in (DEFAULT, policy(*rows)):
        levels = [made.route(attrs.evolve(situation, risk_level=risk)) for risk in Risk]
        assert all(route.primary and route.reason for route in levels)
        for lower, higher in itertools.pairwise(levels):
            assert set(lower.reviews) <= set(higher.reviews)
        for (_, lower), (risk, higher) in itertools.pairwise(zip(Risk, levels, strict=True)):
            is_named = names_risk(made.first(attrs.evolve(situation, risk_level=risk)))
            assert is_named or STRENGTH[lower.mode] <= STRENGTH[higher.mode]
        assert all(ReviewKind.SECURITY in route.reviews for route in levels[2:])


def test_hint() -> None:
    """A step's hint counts where no rule fits and the risk is not high, and the reason says so."""
    step = Step(id="a", role="r", task="t", acceptance_criteria=("c",), risk_level=Risk.LOW, model="GLM")
    route = DEFAULT.route(situation_of(step), step.model)
    assert (route.primary, route.reason) == ("GLM", "No rule fits low risk: the default. The plan's hint names GLM.")
    for other in (at(Risk.HIGH), at(Risk.LOW, failure_count=2), at(Risk.LOW, task_type=TaskType.UX)):
        assert DEFAULT.route(other, "GLM") == DEFAULT.route(other)


RULES = """
version: 2
routing_rules:
  - if: "risk_level == 'high' and not ambiguous"
    then: {primary: Claude, secondary: Codex (GPT), require: [security_agent, manual_approval]}
  - if: "ambiguous"
    then: {primary: Claude, secondary: Codex (GPT), mode: dual-run}
  - if: failure_count >= 3
    then: {escalate_to: Strongest, action: escalate_and_refactor}
defaults: {primary: Codex (GPT), secondary: null}
"""


def test_rules_form(tmp_path: Path) -> None:
    """The form with if and then loads; a row that only escalates comes on top of the row that fits."""
    (tmp_path / "policy.yaml").write_text(RULES)
    made = load_policy(tmp_path / "policy.yaml")
    high = made.route(at(Risk.HIGH))
    assert high.reviews == (ReviewKind.SECURITY, ReviewKind.MANUAL_APPROVAL)
    assert made.route(at(Risk.LOW, is_ambiguous=True)).mode is Mode.DUAL_RUN
    routes = [made.route(at(Risk.HIGH, failure_count=count)) for count in (2, 3)]
    assert [route.primary for route in routes] == ["Claude", "Strongest"]
    assert routes[1].reviews == high.reviews


def test_strategies_form() -> None:
    """In the form with conditions all of a row must hold, and a row may name its own escalation."""
    data = {
        "strategies": [
            {"conditions": {"task_type": "implementation", "risk_level": ["low", "medium"]}, "primary_model": "GLM",
             "secondary_model": None, "escalation_model": "Codex"},
            {"conditions": {"doc_trigger": True}, "primary_model": "Gemini"},
        ],
        "defaults": {"primary": "Codex", "secondary": "Claude"},
    }  # fmt: skip
    made = read_policy(data, "policy")
    draft = at(Risk.LOW, task_type=TaskType.IMPLEMENTATION)
    found = [made.route(each).primary for each in (draft, attrs.evolve(draft, failure_count=2), at(Risk.LOW))]
    assert found == ["GLM", "Codex", "Codex"]
    assert made.route(at(Risk.MEDIUM, doc_trigger="README")).primary == "Gemini"


def test_faults_at_once() -> None:
    """A policy's faults are all told, each at its place with the near name."""
    rows = [
        {"if": "risk_level == 'hgh'", "then": {"primary": "A"}},
        {"if": "ambiguous", "then": {"mode": "dual-run", "require": ["secrity"]}},
        {"if": "role == Lead", "then": {"escalate_to": "Z"}},
        {"if": "doc_trigger", "then": {"primary": "A", "action": "escalate_and_refacter"}},
    ]
    with pytest.raises(PolicyError) as caught:
        read_policy({"routing_rules": rows, "defaults": {"primary": "D"}, "escalation": {"failures": 0}}, "p")
    assert [str(fault) for fault in caught.value.faults] == [
        "$.routing_rules[0].if: 'hgh' is no risk_level: there are low, medium, high, critical (did you mean 'high'?)",
        "$.routing_rules[1].then: names no primary model",
        "$.routing_rules[1].then: dual-run needs a second model: name the secondary",
        (
            "$.routing_rules[1].then.require[0]: 'secrity' is no review: there are qa, security, integration, "
            "manual_approval (did you mean 'security'?)"
        ),
        "$.routing_rules[2].if: escalates without asking about failure_count, so it would from the start: add it",
        (
            "$.routing_rules[3].then.action: 'escalate_and_refacter' is no action: there is escalate_and_refactor "
            "(did you mean 'escalate_and_refactor'?)"
        ),
        "$.escalation.failures: must be 1 or more: there is nothing to escalate before",
    ]


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (
            {
                "routing_rules": [
                    {"if": "risk_level == 'hgh'", "then": {"primary": "", "mode": "dual-rn", "require": ["secrity"]}},
                    {"if": 1, "then": {"primary": 2}},
                    {"iff": "ambiguous"},
                ],
                "defaults": {"primary": " "},
                "escalation": {"failures": 0, "modle": "A"},
            },
            [
                "routing_rules[0].then.mode",
                "routing_rules[1].if",
                "routing_rules[1].then.primary",
                "routing_rules[2].iff",
                "routing_rules[2].if",
                "routing_rules[2].then",
                "escalation.modle",
                "routing_rules[0].if",
                "routing_rules[0].then",
                "routing_rules[0].then.require[0]",
                "escalation.failures",
                "defaults",
            ],
        ),
        (
            {
                "strategies": [
                    {"conditions": {"risk_level": []}, "primary_model": "A", "mode": "dual-rn"},
                    {"conditions": {"role": 5}, "mode": "dual-run", "review-requirements": ["secrity"]},
                ],
            },
            [
                "strategies[0].mode",
                "strategies[1].conditions.role",
                "strategies[1].primary_model",
                "defaults",
                "strategies[0].conditions",
                "strategies[1]",
                "strategies[1].review_requirements[0]",
            ],
        ),
    ],
)
def test_rules_are_told_beside_types(data: dict[str, Any], places: list[str]) -> None:
    """A value of a wrong type hides no condition, review or model that is wrong, and nothing is told twice."""
    with pytest.raises(PolicyError) as caught:
        read_policy(data, "p")
    assert [fault.path for fault in caught.value.faults] == [f"$.{place}" for place in places]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"defaults": {"primary": "A"}}, "$: give strategies or routing_rules, one of them"),
        ({"strategies": []}, "$.defaults: required key is missing"),
        (
            {"strategies": [{"conditions": {"risk_levl": "high"}, "primary_model": "A"}], "defaults": {"primary": "A"}},
            "$.strategies[0].conditions.risk_levl: unknown key (did you mean 'risk_level'?)",
        ),
        (
            {"routing_rules": [{"iff": "ambiguous", "if": 1, "then": {"primary": "A"}}], "defaults": {"primary": "A"}},
            (
                "$.routing_rules[0].iff: unknown key (did you mean 'if'?)\np: $.routing_rules[0].if: expected a "
                "string, found an integer 1"
            ),
        ),
        (
            {
                "routing_rules": [{"zzz": 1, "if": "ambiguous", "then": {"primary": "A"}}],
                "defaults": {"primary": "A"},
            },
            "$.routing_rules[0].zzz: unknown key: there are if, then, name",
        ),
        (
            {"routing_rules": [{"if": "ambiguous", "then": {"primary": "A"}}] * 2, "defaults": {"primary": "A"}},
            "$.routing_rules[1]: 'ambiguous' names or asks what an earlier rule does, or is reserved: rename it",
        ),
    ],
)
def test_malformed(data: dict[str, Any], said: str) -> None:
    """What is no policy is refused in words."""
    with pytest.raises(PolicyError) as caught:
        read_policy(data, "p")
    assert str(caught.value) == f"p: {said}"

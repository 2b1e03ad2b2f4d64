"""Conditions: a small language that is read, checked and evaluated without running anything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from orchestrator.plan.conditionreader import parse_condition
from orchestrator.plan.conditions import ConditionError, fields_of
from orchestrator.plan.routing import Situation
from orchestrator.plan.vocabulary import Risk, TaskType

HERE = Situation(
    risk_level=Risk.HIGH,
    task_type=TaskType.UX,
    role="Designer",
    failure_count=2,
    is_ambiguous=True,
    doc_trigger="README",
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("risk_level == 'high'", True),
        ("risk_level == high", True),
        ('risk_level != "high"', False),
        ("risk_level >= medium", True),
        ("risk_level > 'high'", False),
        ("risk_level in ['high', 'critical']", True),
        ("risk_level not in ('high')", False),
        ("failure_count >= 2 and role == 'Designer'", True),
        ("failure_count > 2 or ambiguous", True),
        ("ambiguous == false", False),
        ("not ambiguous or not (task_type == ux)", False),
        ("!ambiguous || task_type == 'ux' && failures == 2", True),
        ("doc_trigger", True),
        ("doc_trigger == true", True),
        ("doc_trigger == 'CHANGELOG'", False),
        ("role == Implementer or role == Designer and risk == low", False),
    ],
)
def test_meaning(text: str, holds: bool) -> None:
    """Comparisons, and, or, not and lists mean what they say; `and` binds closer than `or`."""
    assert parse_condition(text).holds(HERE) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column 1: expected a field such as risk_level, found the end"),
        ("risk_levl == 'high'", "unknown field 'risk_levl': there are risk_level"),
        ("risk_level == 'hgh'", "'hgh' is no risk_level: there are low, medium, high, critical"),
        ("risk_level = 'high'", "column 12: '=' cannot stand here; texts are quoted, = is written =="),
        ("risk_level", "column 11: expected a comparison of risk_level, such as ==, found the end"),
        ("failure_count >= 'two'", "failure_count is compared with 'two': expected a whole number"),
        ("role > 'a'", "role has no order: compare it with == or in"),
        ("ambiguous == 1", "ambiguous is compared with 1: expected true or false"),
        ("(ambiguous", "column 11: expected ')', found the end"),
        ("ambiguous ambiguous", "column 11: expected 'and', 'or' or the end, found 'ambiguous'"),
        ("risk_level in 'high'", "column 15: expected a list such as ['high', 'critical'], found \"'high'\""),
        ("__import__('os').system('true')", "column 17: '.' cannot stand here"),
        ("(" * 100 + "ambiguous" + ")" * 100, "nested deeper than 30 levels"),
        ("not " * 400 + "ambiguous", "nested deeper than 30 levels"),
        ("ambiguous and " * 200 + "ambiguous", "longer than 2000 characters"),
    ],
)
def test_faults(text: str, said: str) -> None:
    """A condition that cannot be read says what and where; nothing in it is ever run."""
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    assert str(caught.value).startswith(said)


@settings(deadline=None)
@given(some.text(alphabet="risk_level ambou'\"=!<>()[]&|,012andortif", max_size=60))
def test_any_text(text: str) -> None:
    """Any text is a condition that can be evaluated, or a ConditionError."""
    try:
        condition = parse_condition(text)
    except ConditionError:
        return
    assert condition.holds(HERE) in (True, False)
    assert parse_condition(str(condition)).holds(HERE) is condition.holds(HERE)


def test_fields() -> None:
    """The fields that a condition asks about are known."""
    assert fields_of(parse_condition("not (ambiguous or risk == low) and failures > 1")) == {
        "ambiguous", "risk_level", "failure_count",
    }  # fmt: skip

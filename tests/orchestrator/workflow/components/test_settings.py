"""Settings of components: read strictly, every fault at once."""

from __future__ import annotations

import pytest

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.workflow.components.roles import roles_with
from orchestrator.workflow.components.settings import (
    ComponentSettings,
    LearningSettings,
    MetricsSettings,
    RetrySettings,
    SubagentSettings,
    component_settings,
)


def test_the_contract_s_list_of_names_gives_the_defaults() -> None:
    """Contract 4: components are listed by name; retries are test 3, review 2, build 1, a context has 4,096."""
    listed = ["state-manager", "retry-handler", "metrics-collector", "learning-recorder", "subagent-spawner"]

    settings = component_settings(listed, "orchestrator.md")

    assert settings == component_settings(None, "orchestrator.md") == ComponentSettings()
    assert settings.retry_handler == RetrySettings(test=3, review=2, build=1, custom={})
    assert (settings.subagent_spawner.context_characters, settings.subagent_spawner.seconds) == (4_096, 300.0)


def test_a_domain_declares_retries_metrics_and_roles_of_its_own() -> None:
    """A domain can declare its own metrics, retry policies and subagent types, as a table or within the list."""
    table = parse_document(
        """
retry-handler: {review: 3, custom: {deploy: 2}}
metrics-collector: {counts: [stories_done], categories: [qa]}
learning-recorder: {similar-failures: 4}
subagent-spawner:
  generator: writer
  roles:
    TRANSLATOR:
      instructions: Translate the text.
      requires: [text]
      output-schema: {required: [text], properties: {text: {type: string}}}
""",
        ".yaml",
        "domain.yaml",
    )

    settings = component_settings(table, "domain.yaml")

    assert settings.retry_handler == RetrySettings(review=3, custom={"deploy": 2})
    assert settings.metrics_collector == MetricsSettings(counts=("stories_done",), categories=("qa",))
    assert settings.learning_recorder == LearningSettings(similar_failures=4)
    role = roles_with(settings.subagent_spawner.roles)["TRANSLATOR"]
    assert (role.instructions, role.requires) == ("Translate the text.", ("text",))
    assert role.output_schema == {
        "type": "object",
        "required": ["status", "text"],
        "properties": {"status": {"enum": ["success", "failure", "blocked"]}, "text": {"type": "string"}},
    }
    assert component_settings([{name: each} for name, each in table.items()], "domain.yaml") == settings


def test_every_fault_is_told_at_once_with_its_place() -> None:
    """A bad section answers with everything that is wrong, each with its path and a hint."""
    section = [
        "retry-handlr",
        {"retry-handler": {"test": 0, "custom": {"deploy": "two"}}},
        "metrics-collector",
        "metrics_collector",
        7,
        {"subagent-spawner": {"seconds": -1, "roles": {"POET": {}, "TESTER": {"output-schema": {"type": "array"}}}}},
        {"learning-recorder": {"similarity": 2, "simlar-failures": 3}},
    ]

    with pytest.raises(DocumentError) as caught:
        component_settings(section, "domain.yaml")

    assert sorted({fault.path for fault in caught.value.faults}) == [
        "$.components.learning-recorder.similarity",
        "$.components.learning-recorder.simlar-failures",
        "$.components.retry-handler.custom.deploy",
        "$.components.retry-handler.test",
        "$.components.subagent-spawner.roles.TESTER.output_schema.type",
        "$.components.subagent-spawner.seconds",
        "$.components[0]",
        "$.components[3]",
        "$.components[4]",
    ]
    assert [fault.hint for fault in caught.value.faults if fault.hint] == ["retry-handler", "similar_failures"]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "objekt"}, "$.type"),
        ({"properties": {"a": {"pattern": "^a"}}}, "$.properties.a.pattern"),
        ({"properties": {"status": {"type": "string"}}}, "$.properties.status"),
        ({"properties": {"status": {"enum": ["done"]}}}, "$.properties.status"),
    ],
)
def test_a_schema_that_is_not_checked_whole_is_refused(schema: dict[str, object], path: str) -> None:
    """A rule that would be read over in silence, or a status of another meaning, is a fault when loading."""
    section = {"subagent-spawner": {"roles": {"POET": {"instructions": "Write.", "output-schema": schema}}}}

    with pytest.raises(DocumentError) as caught:
        component_settings(section, "domain.yaml")

    prefix = "$.components.subagent-spawner.roles.POET.output_schema"
    assert [fault.path for fault in caught.value.faults] == [prefix + path.removeprefix("$")]


def test_a_role_of_one_s_own_says_what_it_does() -> None:
    """A custom role without instructions is refused; a built-in one may be changed in part."""
    with pytest.raises(DocumentError, match="needs instructions"):
        component_settings({"subagent-spawner": {"roles": {"POET": {}}}}, "domain.yaml")

    changed = component_settings({"subagent-spawner": {"roles": {"TESTER": {"seconds": 9}}}}, "domain.yaml")
    before, after = (roles_with(each.roles)["TESTER"] for each in (SubagentSettings(), changed.subagent_spawner))
    assert (after.instructions, after.output_schema, after.seconds) == (before.instructions, before.output_schema, 9)

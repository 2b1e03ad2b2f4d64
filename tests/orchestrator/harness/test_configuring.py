"""The harness of a mount plan."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import DocumentError
from orchestrator.harness.actions import DEFAULT_ROLES, ToolRole, ToolRoles
from orchestrator.harness.configuring import harness_from
from orchestrator.harness.harness import WORKFLOW_HINTS, Harness
from orchestrator.harness.rules import DangerousCommands, ReadLimit, ToolSequence, WorkspaceBounds, default_rules


@pytest.mark.parametrize("config", [{}, {"harness": True}, {"harness": None}, {"harness": {}}, {"other": 1}])
def test_without_a_word_there_is_the_default(config: dict[str, Any]) -> None:
    """All rules, in the workspace."""
    assert harness_from(config, workspace="/app") == Harness(default_rules("/app"), ToolRoles(root="/app"))


@pytest.mark.parametrize("asked", [False, "none"])
def test_a_harness_can_be_switched_off(asked: Any) -> None:
    """Nothing is denied, verified or ended then."""
    off = Harness((), auto_verify=False, finish_when_green=False)
    assert harness_from({"harness": asked}, workspace="/app") == off


def test_rules_roles_and_switches_are_taken() -> None:
    """Rules in the order they are written; roles beside the usual ones."""
    asked = {
        "rules": [
            {"read-limit": {"limit": 3}},
            "sequence",
            {"workspace-bounds": {"root": "/srv"}},
            {"dangerous-commands": {"also-writable": ["/tmp"]}},
        ],
        "roles": {"save": "write", "edit_file": "other"},
        "path-arguments": ["target"],
        "auto_verify": False,
        "finish-when-green": False,
        "hints": ["Be brief."],
        "workflow-hints": True,
    }
    assert harness_from({"harness": asked}, workspace="/app") == Harness(
        (ReadLimit(3), ToolSequence(), WorkspaceBounds("/srv"), DangerousCommands("/app", ("/tmp",))),
        ToolRoles({**DEFAULT_ROLES, "save": ToolRole.WRITE, "edit_file": ToolRole.OTHER}, ("target",), root="/app"),
        auto_verify=False,
        finish_when_green=False,
        hints=(*WORKFLOW_HINTS, "Be brief."),
    )


def test_links_are_followed_where_the_host_asks() -> None:
    """The workspace's as well as those of each path."""

    def resolve(path: str) -> str:
        return path.replace("/link", "/real")

    harness = harness_from({}, workspace="/link", resolve=resolve)
    assert harness == Harness(default_rules("/real"), ToolRoles(root="/real"))
    assert harness.roles.path_of("write_file", {"path": "/link/a"}) == "/real/a"


@pytest.mark.parametrize(("stated", "root"), [("/srv/./work/", "/srv/work"), ("work", "/app/work"), (".", "/app")])
def test_the_plan_may_name_the_workspace(stated: str, root: str) -> None:
    """A relative one starts from the host's; bounds and paths are those of the one that is named."""
    harness = harness_from({"harness": {"workspace": stated}}, workspace="/app")
    assert harness == Harness(default_rules(root), ToolRoles(root=root))


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("", "names no directory"),
        (" ", "names no directory"),
        ("a\0b", "names no directory"),
        ("~/work", "write the path of the home directory out"),
        (7, "expected a string"),
        (["/a"], "expected a string"),
        ("work", "give an absolute one"),
    ],
)
def test_what_is_no_workspace_is_refused_with_its_place(stated: Any, said: str) -> None:
    """And with what would do."""
    with pytest.raises(DocumentError) as caught:
        harness_from({"harness": {"workspace": stated}}, workspace=None)
    (fault,) = caught.value.faults
    assert (fault.path, said in fault.message) == ("$.harness.workspace", True)


def test_every_fault_is_told_at_once_with_its_place() -> None:
    """And with what was probably meant."""
    asked = {
        "rules": [
            "sequenze",
            {"read-limit": {"limit": 0}},
            {"repetition": {"limt": 2}},
            7,
            "completion",
            "completion",
            "workspace-bounds",
            {"stagnation": 3},
        ],
        "roles": {"save": "wirte"},
        "autoverify": True,
    }
    with pytest.raises(DocumentError) as raised:
        harness_from({"harness": asked}, workspace=None)
    assert [(fault.path, fault.hint) for fault in raised.value.faults] == [
        ("$.harness.roles.save", "write"),
        ("$.harness.autoverify", "auto_verify"),
        ("$.harness.rules[0]", "sequence"),
        ("$.harness.rules[1].read-limit.limit", ""),
        ("$.harness.rules[2].repetition.limt", "limit"),
        ("$.harness.rules[3]", ""),
        ("$.harness.rules[5]", ""),
        ("$.harness.rules[6].root", ""),
        ("$.harness.rules[7].stagnation", ""),
    ]


@pytest.mark.parametrize("asked", ["nome", 7, [], {"rules": "sequence"}, {"rules": [{1: {}}]}])
def test_what_is_no_harness_is_refused(asked: Any) -> None:
    """Nothing is guessed."""
    with pytest.raises(DocumentError, match=r"\$\.harness"):
        harness_from({"harness": asked}, workspace="/app")

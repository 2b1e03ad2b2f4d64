"""What tools of the kernel return, as the model reads it and as the hooks are shown it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.agent.ports import ToolOutcome
from orchestrator.amplifier.results import outcome_of, result_fields, result_text

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (
            core.ToolResult(success=True, output={"a": 1}),
            ToolOutcome(is_success=True, output='{"a": 1}', data={"a": 1}),
        ),
        (core.ToolResult(success=False, output="no"), ToolOutcome(is_success=False, output="no", data="no")),
        ({"success": False, "output": "no"}, ToolOutcome(is_success=False, output="no", data="no")),
        ({"a": 1}, ToolOutcome(is_success=True, output='{"a": 1}', data={"a": 1})),
        ("text", ToolOutcome(is_success=True, output="text", data="text")),
        (None, ToolOutcome(is_success=True, output="Success", data=None)),
    ],
)
def test_an_outcome_is_what_the_result_says_of_itself(result: Any, outcome: ToolOutcome) -> None:
    """Success, the text by the result's own serialization, and the structured data beside it."""
    assert outcome_of(result) == outcome


def test_a_serialization_that_fails_is_ours() -> None:
    """The kernel's raises for objects that are no JSON."""
    result = core.ToolResult(success=True, output={"when": {1, 2}})
    with pytest.raises(TypeError):
        result.get_serialized_output()
    assert outcome_of(result).output == '{"when": [1, 2]}'


def test_rich_content_alone_is_read_by_its_texts() -> None:
    """The kernel's own serialization of it says no more than `Success`."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    result = core.ToolResult(success=True, content=[{"type": "text", "text": "A chart:"}, image])
    assert outcome_of(result).output == "A chart:\n\n(image)"


def test_hooks_are_shown_the_fields_of_the_kernels_result() -> None:
    """The key `content` is there only where there is any."""
    failed = core.ToolResult(success=False, error={"message": "gone"})
    assert result_fields(failed) == {"success": False, "output": "gone", "error": {"message": "gone"}}
    assert result_fields(b"x") == {"success": True, "output": "x", "error": None}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"success": False, "error": {"message": "gone"}}, "Error: gone"),
        ({"success": False, "error": {}}, "Error: Unknown error"),
        ({"success": False}, "Error: Failed"),
        ({"output": 0}, "0"),
    ],
)
def test_fields_read_as_the_kernel_would_serialize_them(fields: dict[str, Any], text: str) -> None:
    """For results that a hook changed, and for those that are no ToolResult."""
    assert result_text(fields) == text

"""The picture of a lifecycle, drawn without any other program."""

from __future__ import annotations

from orchestrator_states.path import PathOverlay
from orchestrator_states.svg.drawing import to_svg
from orchestrator_states.svg.layout import LayoutError

__all__ = ["LayoutError", "PathOverlay", "to_svg"]

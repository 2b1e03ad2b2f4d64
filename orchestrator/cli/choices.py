"""Words that options take."""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "ColorChoice",
    "DisplayChoice",
    "ExportFormat",
    "GraphFormat",
    "IsolationLevel",
    "NetworkChoice",
    "PlanGraphFormat",
    "ReportForm",
    "SandboxBackend",
]


class DisplayChoice(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    LIVE = "live"
    PLAIN = "plain"
    QUIET = "quiet"


class ColorChoice(StrEnum):
    """Whether output is coloured."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


class ExportFormat(StrEnum):
    """Forms of an exported run."""

    JSON = "json"
    JSONL = "jsonl"
    JUNIT = "junit"
    CTRF = "ctrf"
    IN_TOTO = "in-toto"
    MARKDOWN = "md"


class GraphFormat(StrEnum):
    """Forms of a drawn lifecycle."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


class PlanGraphFormat(StrEnum):
    """Forms of a drawn plan."""

    TEXT = "text"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


class IsolationLevel(StrEnum):
    """Levels of isolation that may be required."""

    NONE = "none"
    BASIC = "basic"
    STRONG = "strong"


class NetworkChoice(StrEnum):
    """What a generator may reach."""

    HOST = "host"
    NONE = "none"


class SandboxBackend(StrEnum):
    """Sandboxes that need nothing but their name."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    CONTAINMENT = "containment"


class ReportForm(StrEnum):
    """Forms of a report that an eval runner writes."""

    JUNIT = "junit"
    CTRF = "ctrf"
    JSON = "json"

"""Words that options take."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ColorChoice", "DisplayChoice", "ExportFormat", "GraphFormat", "ReportForm"]


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


class ReportForm(StrEnum):
    """Forms of a report that an eval runner writes."""

    JUNIT = "junit"
    CTRF = "ctrf"
    JSON = "json"

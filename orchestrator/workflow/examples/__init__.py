"""Domains that are shipped: they run offline, and are meant to be read and copied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

__all__ = ["EXAMPLES"]

EXAMPLES: Final[Mapping[str, Path]] = MappingProxyType(
    {"software-epic": Path(__file__).parent / "software_epic" / "domain.yaml"}
)
"""The domain file of each example, by the name that the command line takes."""

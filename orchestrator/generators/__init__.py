"""Generators: programs, callables and plug-ins behind the one port."""

from __future__ import annotations

from orchestrator.generators.callable import CallableGenerator, as_generator
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.entry_points import load_generator

__all__ = ["CallableGenerator", "CommandGenerator", "as_generator", "load_generator"]

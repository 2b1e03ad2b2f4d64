"""Models behind any server that speaks OpenAI's chat completions, through the official SDK (extra `openai`).

Exactly one request a call, bounded in time and bytes; what may be tried again is said so to the driver, which
owns every retry. The SDK and its HTTP client are imported when a generator is made, never by this package.
"""

from __future__ import annotations

from orchestrator.generators.openai.generator import OpenAIGenerator

__all__ = ["OpenAIGenerator"]

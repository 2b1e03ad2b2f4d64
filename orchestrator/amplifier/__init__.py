"""The agent as an orchestrator module of Microsoft Amplifier (contract 2): entry point `loop-conformance`.

Needs the extra `amplifier`; amplifier_core itself is imported when a prompt is executed.
"""

from __future__ import annotations

from orchestrator.amplifier.loop import ConformanceLoop
from orchestrator.amplifier.mounting import mount
from orchestrator.amplifier.names import MODULE_ID

__all__ = ["MODULE_ID", "ConformanceLoop", "mount"]

__amplifier_module_type__ = "orchestrator"

"""Hand-written fakes for the ports: scripted and recorded generators, evaluators, a clock, a subscriber.

For tests of hosts as much as for our own; nothing here opens a file, a process or the network.
"""

from __future__ import annotations

from orchestrator.testing.agents import ManualCancellation, ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator.testing.clock import ManualClock
from orchestrator.testing.recorded import RecordedGenerator
from orchestrator.testing.scripted import ScriptedEvaluator, ScriptedGenerator
from orchestrator.testing.subscriber import RecordingSubscriber

__all__ = [
    "ManualCancellation",
    "ManualClock",
    "RecordedGenerator",
    "RecordingSubscriber",
    "ScriptedEvaluator",
    "ScriptedGenerator",
    "ScriptedProvider",
    "ScriptedTool",
    "ScriptedVerifier",
]

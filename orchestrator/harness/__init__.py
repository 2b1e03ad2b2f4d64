"""The smart harness (contract 3): composable rules over typed records, for any agent run.

Nothing here reads a file, waits, or talks to a bus: what a harness answers follows from the records it is given,
so that a run can be replayed.
"""

from __future__ import annotations

"""A domain: an epic of stories, each planned, implemented, tested, reviewed and completed (contract 4).

Its implementing phase is a conformance run, its testing phase runs the stories' real suites, and the generator is a
script, so that all of it runs offline. Stories, suites and answers lie here as data: what ends in `.txt` is code that
no tool is to take for code of this package.
"""

from __future__ import annotations

__all__: list[str] = []

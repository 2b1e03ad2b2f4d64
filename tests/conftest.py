"""What the whole test run shares."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def threads_of_the_amplifier_kernel_end() -> Iterator[None]:
    """They can crash an interpreter that ends while they run, so a run that started them waits a moment."""
    yield
    if "amplifier_core" in sys.modules:
        time.sleep(0.3)

"""The course that a run took through its lifecycle: how often, how long, by which moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.record import Record
from orchestrator_states.catalogue import lifecycle
from orchestrator_states.path import PathOverlay

__all__ = ["course_of"]


def course_of(records: Sequence[Record]) -> PathOverlay:
    """The visits, moves and times of a run's records, for `to_text`, `to_mermaid`, `to_dot` and `to_svg`.

    The time in an open state is the time between the records of an invocation; what lies between two
    invocations is nobody's time.
    """
    resting = lifecycle(records[0].lifecycle).resting if records else ()
    moves = [record for record in records if record.source != record.target]
    visits = Counter(record.target for record in moves)
    visits.update(record.source for record in records[:1])
    times: Counter[str] = Counter()
    for one, other in pairwise(records):
        is_idle = isinstance(one.event, ExecutionEnd) or isinstance(other.event, ExecutionStart)
        if not is_idle and one.target not in resting:
            times[one.target] += max(0, other.at - one.at)
    return PathOverlay(
        visits=dict(visits),
        moves=dict(Counter((record.source, record.event.name, record.target) for record in moves)),
        times_us=dict(times),
    )

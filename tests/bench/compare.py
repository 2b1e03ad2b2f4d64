"""This engine beside its peers: interleaved rounds in fresh processes, ratios taken inside one run.

    PEERS_BENCH=DIRECTORY python tests/bench/compare.py memory|durable|disk|concurrent|growth [--rounds 5]

PEERS_BENCH is a folder with `common.py` (the workload) and one `peer_*.py` a peer; their environments are below
$PEERS_ROOT/venvs (default ~/.cache/orchestrator-peers). A peer that is not there is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("PEERS_BENCH", "."))
VENVS = Path(os.environ.get("PEERS_ROOT", Path.home() / ".cache" / "orchestrator-peers")) / "venvs"

Row = tuple[str, str, str, str, tuple[str, ...]]
OURS = "ours"
FASTEST = "pydantic-graph 1.x Simple, 3 nodes"
ROWS: dict[str, tuple[Row, ...]] = {
    "memory": (
        ("plain while loop", "base", "peer_baseline.py", "memory", ()),
        ("ours: history, budget, log an attempt", OURS, "peer_ours.py", "memory", ()),
        ("no engine: what is asked for, in one function", OURS, "peer_floor.py", "memory", ()),
        ("ours: history and budget alone", OURS, "peer_ours.py", "memory_bare", ()),
        ("ours: every record rendered", OURS, "peer_ours.py", "memory_records", ()),
        ("ours: sync callables in threads", OURS, "peer_ours.py", "memory_sync", ()),
        (FASTEST, "pydgraph1", "peer_pydantic_graph.py", "memory", ()),
        ("Burr, 3 actions", "burr", "peer_burr.py", "memory", ()),
        ("pydantic-graph 2.x", "pydgraph", "peer_pydantic_graph.py", "memory", ()),
        ("python-statemachine", "base", "peer_statemachine.py", "memory", ()),
        ("LangGraph, 3 nodes", "langgraph", "peer_langgraph.py", "memory", ()),
    ),
    "durable": (
        ("SQLite row, WAL FULL", "base", "peer_baseline.py", "sqlite_wal_full", ()),
        ("ours: SqliteJournal, FULL, two commits", OURS, "peer_ours.py", "durable", ()),
        ("Burr SQLitePersister, 3 actions", "burr", "peer_burr.py", "durable", ()),
        ("LangGraph SqliteSaver, 3 nodes", "langgraph", "peer_langgraph.py", "durable", ()),
        ("DBOS SQLite, 3 steps", "dbos", "peer_dbos.py", "durable", ()),
    ),
    "concurrent": (
        ("plain asyncio", "base", "peer_baseline.py", "memory", ()),
        ("ours", OURS, "peer_ours.py", "memory", ()),
        (FASTEST, "pydgraph1", "peer_pydantic_graph.py", "memory", ()),
        ("LangGraph", "langgraph", "peer_langgraph.py", "memory", ()),
    ),
}
ROWS["disk"] = ROWS["durable"]


def measured(row: Row, root: Path, *options: str) -> dict[str, Any]:
    """One row in a fresh process; empty when the peer is not there or fails."""
    _, environment, script, mode, extra = row
    python = Path(sys.executable) if environment == OURS else VENVS / environment / "bin" / "python"
    folder = HERE if environment == OURS else PEERS
    if not python.exists() or not (folder / script).exists():
        return {}
    command = [str(python), script, "--mode", mode, "--root", str(root), *options, *extra]
    variables = {**os.environ, "PYTHONPATH": str(PEERS), "BENCH_ROOT": str(root), "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300)
    lines = [line for line in ended.stdout.splitlines() if line.startswith("JSON ")]
    if not lines:
        print(f"{row[0]}: {ended.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    found: dict[str, Any] = json.loads(lines[-1][5:])
    return found


def rounds(rows: Sequence[Row], count: int, root: Path, *options: str) -> dict[str, list[dict[str, Any]]]:
    """Every row once a round, so that what slows the machine slows all of them."""
    found: dict[str, list[dict[str, Any]]] = {row[0]: [] for row in rows}
    for number in range(count):
        for row in rows:
            found[row[0]].append(measured(row, root, *options))
        print(f"round {number + 1} of {count}", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, list[dict[str, Any]]], figure: str, head: str) -> None:
    """Medians, and each row's ratio to our first one, taken round by round."""
    ours = next(name for name in found if name.startswith("ours"))
    print(f"| | {head} | times ours |\n|---|---|---|")
    for name, each in found.items():
        pairs = [(one[figure], our[figure]) for one, our in zip(each, found[ours], strict=True) if one and our]
        if pairs:
            ratio = statistics.median(one / our for one, our in pairs)
            print(f"| {name} | {statistics.median(one for one, _ in pairs):.0f} | {ratio:.2f} |")


def growth(root: Path) -> None:
    """Our cost an attempt as a run gets longer."""
    print("| attempts in a run | µs of CPU an attempt, in memory | durable |\n|---|---|---|")
    for attempts in (10, 100, 1_000, 10_000):
        options = ("--k", str(attempts), "--runs", str(max(1, 300 // attempts)), "--warmup", "1", "--min-seconds", "0")
        rows = [("", OURS, "peer_ours.py", mode, ()) for mode in ("memory", "durable")]
        figures = [measured(row, root, *options)["cpu_us_per_attempt"] for row in rows]
        print(f"| {attempts} | {figures[0]:.0f} | {figures[1]:.0f} |", flush=True)


def main() -> None:
    """Measure one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=[*ROWS, "growth"])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    fast = Path("/dev/shm") if Path("/dev/shm").is_dir() and arguments.what != "disk" else None
    with tempfile.TemporaryDirectory(dir=fast or HERE) as place:
        if arguments.what == "growth":
            growth(Path(place))
        elif arguments.what == "concurrent":
            found = rounds(ROWS["concurrent"], arguments.rounds, Path(place), "--what", "concurrent")
            table(found, "runs_per_s", "runs/s, 1,000 at once")
        else:
            figure = "us_per_attempt_median" if arguments.what == "disk" else "cpu_us_per_attempt"
            seconds = ("--max-seconds", "3", "--runs", "100")
            found = rounds(ROWS[arguments.what], arguments.rounds, Path(place), *seconds)
            table(found, figure, "µs an attempt" if arguments.what == "disk" else "µs of CPU an attempt")


if __name__ == "__main__":
    main()

"""How long commands take on a stream with 10,000 batches in its ledger, compared with one with 100.

    python benchmarks/long_history.py [--rounds N]

Whole processes in turns, without Spark, which a plan for an unchanged pipeline file does not need. The checkpoint has
what Spark keeps of so many batches: the newest 100 of each log, and one compacted entry of the files.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In place of this folder, where inspect.py has the name of a module of the standard library.
sys.path[0] = str(ROOT)

from tests.support.homes import EMPTY_DELTA, HomeSpec, make_home  # noqa: E402 - found by the path above

BATCHES = 10_000
KEPT = 100
"""``spark.sql.streaming.minBatchesToRetain``, and the history that is compared with."""
GOAL_S = 1.0
COMMANDS = {
    "status": ("status",),
    "ledger": ("ledger", "per_page"),
    "plan rebuild": ("plan", "rebuild", "per_page", "--out", "plan.json", "--force"),
}


def main() -> int:
    """Measure, and print a line for each command. Exit code 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    rounds, slowest = parser.parse_args().rounds, 0.0
    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as name:
        folders = {batches: Path(name) / str(batches) for batches in (BATCHES, KEPT)}
        for batches, folder in folders.items():
            _lay_down(folder, batches)
        for shown, words in COMMANDS.items():
            taken: dict[int, list[float]] = {batches: [] for batches in folders}
            for _ in range(rounds):
                for batches, folder in folders.items():
                    taken[batches].append(_seconds(words, folder))
            long, short = (statistics.median(taken[batches]) for batches in folders)
            slowest = max(slowest, long)
            figures = {f"{BATCHES}_s": round(long, 3), f"{KEPT}_s": round(short, 3), "ratio": round(long / short, 2)}
            print(f"{shown}: {json.dumps(figures)}", flush=True)
    return 0 if slowest <= GOAL_S else 1


def _lay_down(folder: Path, batches: int) -> None:
    """A project with a stream that has run so many batches."""
    folder.mkdir()
    newest = batches - 1
    home = make_home(folder, HomeSpec(planned=newest, committed=newest, state=newest, written=newest))
    checkpoint = home / "streams" / "clicks" / "per_page" / "checkpoints" / "0001"
    for log in (checkpoint / "sources" / "0", folder / "out" / "_spark_metadata"):
        entries = [log / str(batch) for batch in range(batches)]
        lines = [line for entry in entries for line in entry.read_text().split("\n")[1:]]
        (log / f"{newest}.compact").write_text("\n".join(["v1", *lines]))
        for entry in entries:
            entry.unlink()
    for batch in range(batches - KEPT):
        for file in (f"offsets/{batch}", f"commits/{batch}", f"state/0/0/{batch + 1}.delta"):
            (checkpoint / file).unlink()
    (checkpoint / "state" / "0" / "0" / f"{batches - KEPT}.snapshot").write_bytes(EMPTY_DELTA)


def _seconds(words: tuple[str, ...], folder: Path) -> float:
    started = time.perf_counter()
    command = [sys.executable, "-m", "slackwater", *words]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - started
    if ended.returncode != 0:
        raise SystemExit(f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return taken


if __name__ == "__main__":
    sys.exit(main())

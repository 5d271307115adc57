"""What `slackwater doctor` costs compared with `slackwater inspect` on one checkpoint of 60,000 files, and on a small
one.

    python benchmarks/doctor.py [--rounds N]

Whole processes in turns. The ratio is that of processor time, which other programs of the machine do not change.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In place of this folder, where inspect.py has the name of a module of the standard library.
sys.path[0] = str(ROOT)

from benchmarks.checkpoints import make_large  # noqa: E402 - found by the path above

GOAL_TIMES, GOAL_S = 3.0, 1.0
ENDED = {"inspect": (0, 3), "doctor": (0, 1, 5)}
"""Exit codes of a command that has read the checkpoint."""


def main() -> int:
    """Measure, and print a line for each checkpoint. Exit code 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as name:
        large, small = Path(name) / "large", Path(name) / "small"
        make_large(large)
        make_large(small, partitions=2, versions=5)
        times = _report("60,000 files", large, rounds)["times"]
        seconds = _report("a small checkpoint", small, rounds)["doctor_s"]
    return 0 if times <= GOAL_TIMES and seconds <= GOAL_S else 1


def _report(shown: str, checkpoint: Path, rounds: int) -> dict[str, float]:
    """Print and return the medians of both commands on one checkpoint."""
    samples: dict[str, list[tuple[float, float]]] = {verb: [] for verb in ENDED}
    for _ in range(rounds):
        for verb, taken in samples.items():
            taken.append(_taken(verb, checkpoint))
    cpu = {verb: statistics.median(one for one, _ in taken) for verb, taken in samples.items()}
    clock = {verb: statistics.median(one for _, one in taken) for verb, taken in samples.items()}
    figures = {
        "doctor_cpu_s": round(cpu["doctor"], 3),
        "inspect_cpu_s": round(cpu["inspect"], 3),
        "times": round(cpu["doctor"] / cpu["inspect"], 2),
        "doctor_s": round(clock["doctor"], 3),
    }
    print(f"{shown}: {json.dumps(figures)}", flush=True)
    return figures


def _taken(verb: str, checkpoint: Path) -> tuple[float, float]:
    """The processor time and the time of one process, in seconds."""
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "slackwater", verb, str(checkpoint)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        cwd=checkpoint.parent,
    )
    after = os.times()
    if done.returncode not in ENDED[verb]:
        sys.exit(done.stderr or f"slackwater {verb}: exit code {done.returncode}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return cpu, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())

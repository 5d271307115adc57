"""How long short commands take, each as a whole process and in turns with ``python -c 'import sqlite3'``.

    python benchmarks/start.py [--against CHECKOUT] [--rounds N]

``--against`` is another checkout, such as one of the version before: its commands take turns with ours, and the ratio
of the medians is shown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# In place of this folder, where inspect.py has the name of a module of the standard library.
sys.path[0] = str(ROOT)

COMMANDS = {
    "status": ("status",),
    "ledger": ("ledger",),
    "inspect": ("inspect", ".slackwater/streams/clicks/per_page/checkpoints/0001"),
    "--help": ("--help",),
    "completion": ("completion", "bash"),
}


def cpu_s(command: list[str], checkout: Path, folder: Path) -> float:
    """The processor time of one process: other programs of this machine do not count."""
    before = os.times()
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    quiet = subprocess.DEVNULL
    subprocess.run([sys.executable, *command], check=True, stdout=quiet, stderr=quiet, cwd=folder, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> int:
    """Measure, and print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="CHECKOUT", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=9, metavar="N")
    options = parser.parse_args()
    from tests.support.homes import make_home  # noqa: PLC0415 - found by the path above

    with tempfile.TemporaryDirectory(prefix="slackwater-benchmark-") as name:
        folder = Path(name)
        make_home(folder)
        for shown, words in COMMANDS.items():
            ours = ["-m", "slackwater", *words]
            sides = {"ours_s": (ours, ROOT), "sqlite3_s": (["-c", "import sqlite3"], ROOT)}
            if options.against:
                sides["theirs_s"] = (ours, options.against.resolve())
            times: dict[str, list[float]] = {side: [] for side in sides}
            for _ in range(options.rounds):
                for side, (command, checkout) in sides.items():
                    times[side].append(cpu_s(command, checkout, folder))
            medians = {side: round(statistics.median(found), 3) for side, found in times.items()}
            if options.against:
                medians["ratio"] = round(medians["ours_s"] / medians["theirs_s"], 2)
            print(f"{shown}: {json.dumps(medians)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How long the recognition of error texts takes, against one bare search of the same text for each template's words.

python benchmarks/error_texts.py [MIB]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

if sys.path[0] == str(Path(__file__).parent):
    # This folder has modules with names of the standard library.
    del sys.path[0]

from slackwater.diagnose.error_texts import compile_template, error_texts, recognise

LOGS = {
    "a usual log": "26/11/23 10:00:00 INFO MicroBatchExecution: Committed offsets for batch 41. Metadata OffsetSeq\n",
    "one error again and again": "java.lang.IllegalStateException: batch 3 doesn't exist\n",
    "parts of templates": "/state/1/2/3.delta does not exist",
}
LITERALS = tuple({compile_template(text)[0] for error in error_texts() for text in error.texts})


def main() -> None:
    """Print a line for each kind of log."""
    size = int(float(sys.argv[1] if len(sys.argv) > 1 else 8) * (1 << 20))
    print(f"{'log':<28}{'recognise':>12}{'search':>10}{'ratio':>8}{'four times':>12}")
    for name, unit in LOGS.items():
        text = unit * (size // len(unit))
        taken, searched = _seconds(recognise, text), _seconds(_search, text)
        longer = _seconds(recognise, text * 4)
        print(f"{name:<28}{taken:>10.2f} s{searched:>8.2f} s{taken / searched:>8.1f}{longer / taken:>11.1f}x")


def _search(text: str) -> None:
    for literal in LITERALS:
        text.count(literal)


def _seconds(function: Callable[[str], object], text: str) -> float:
    start = time.perf_counter()
    function(text)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

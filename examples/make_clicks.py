"""Writes input for clicks.py: files of JSON lines below ``clicks/``, the same ones every time.

    python make_clicks.py [FILES]

writes the first FILES files (default: 20), or the next ones where there are some already.
"""

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

PAGES = ("/", "/prices", "/docs", "/blog")
FIRST = datetime(2026, 1, 5, 8, tzinfo=UTC)


def write(folder: Path, files: int) -> None:
    """Add files to the folder: 300 clicks in each, one every two seconds."""
    folder.mkdir(exist_ok=True)
    first = len(list(folder.glob("clicks-*.json")))
    for number in range(first, first + files):
        lines = []
        for second in range(0, 600, 2):
            # A click arrives up to five minutes after it was made; the watermark waits for ten.
            clicked_at = FIRST + timedelta(seconds=number * 600 + second - second * 7919 % 300)
            lines.append(
                json.dumps({"page": PAGES[second * 31 % 7 % len(PAGES)], "clicked_at": clicked_at.isoformat()})
            )
        path = folder / f"clicks-{number:02d}.json"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # Spark's file source reads files in the order of their modification times.
        os.utime(path, (FIRST.timestamp() + number, FIRST.timestamp() + number))


if __name__ == "__main__":
    write(Path("clicks"), int(sys.argv[1]) if len(sys.argv) > 1 else 20)

"""Makes something to read for clicks.py: 20 files of JSON lines below ``clicks/``, the same ones every time."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

PAGES = ("/", "/prices", "/docs", "/blog")
FIRST = datetime(2026, 1, 5, 8, tzinfo=UTC)


def main() -> None:
    folder = Path("clicks")
    folder.mkdir(exist_ok=True)
    for number in range(20):
        lines = []
        for second in range(0, 600, 2):
            # Clicks come up to five minutes after they were made; the watermark waits for ten.
            clicked_at = FIRST + timedelta(seconds=number * 600 + second - second * 7919 % 300)
            lines.append(
                json.dumps({"page": PAGES[second * 31 % 7 % len(PAGES)], "clicked_at": clicked_at.isoformat()})
            )
        path = folder / f"clicks-{number:02d}.json"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        # A file source takes files by the time of their modification.
        os.utime(path, (FIRST.timestamp() + number, FIRST.timestamp() + number))


if __name__ == "__main__":
    main()

"""write_until_killed.py URL STREAM: prints each entry that it has recorded, and never ends by itself."""

import itertools
import sys

from slackwater.core.records import LogLine
from slackwater.ledger.ledger import Ledger

url, stream = sys.argv[1:]
with Ledger.open(url, create=False) as ledger:
    for entry in itertools.count():
        ledger.record_lines([LogLine(stream, 1, log, entry, f"v1\n{entry}") for log in ("offsets", "sources/0")])
        sys.stdout.write(f"{entry}\n")

"""write_batches.py URL STREAM COUNT: records batches and their lines, at the same time as other processes do."""

import sys

from slackwater.core.records import BatchRecord, LogLine
from slackwater.ledger.ledger import Ledger

url, stream, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Ledger.open(url, create=False) as ledger:
    sys.stdout.write("ready\n")
    sys.stdin.readline()
    for batch_id in range(count):
        ledger.record_lines([LogLine(stream, 1, log, batch_id, f"v1\n{batch_id}") for log in ("offsets", "commits")])
        ledger.record_batch(BatchRecord(stream, 1, batch_id, timestamp_ms=batch_id, input_rows=1))
sys.stdout.write("done\n")

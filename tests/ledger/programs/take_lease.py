"""take_lease.py URL STREAM FOLDER: takes the lease on request, and holds it until stdin ends."""

import sys
from pathlib import Path

from slackwater.core.errors import LeaseHeld
from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger

url, stream, folder = sys.argv[1:]
with Ledger.open(url, create=False) as ledger:
    sys.stdout.write("ready\n")
    sys.stdin.readline()
    try:
        lease = Lease.acquire(ledger, stream, Path(folder), "run")
    except LeaseHeld as refusal:
        sys.stdout.write(f"{refusal.code}\n")
    else:
        sys.stdout.write(f"fence {lease.fence}\n")
        sys.stdin.read()
        lease.release()

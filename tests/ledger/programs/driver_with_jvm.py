"""driver_with_jvm.py URL STREAM FOLDER: a driver with a second process next to it that outlives it, as a JVM does."""

import subprocess
import sys
from pathlib import Path

from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger

url, stream, folder = sys.argv[1:]
with Ledger.open(url, create=False) as ledger, Lease.acquire(ledger, stream, Path(folder), "run") as lease:
    jvm = subprocess.Popen(["sleep", "120"], start_new_session=True, stdout=subprocess.DEVNULL)
    lease.add_jvm(jvm.pid)
    sys.stdout.write(f"{jvm.pid}\n")
    sys.stdin.read()
    jvm.kill()
    jvm.wait()

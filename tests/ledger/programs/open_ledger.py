"""open_ledger.py URL: creates or opens the ledger, at the same time as other processes."""

import sys

from slackwater.ledger.ledger import Ledger

sys.stdout.write("ready\n")
sys.stdin.readline()
Ledger.open(sys.argv[1], create=True).close()
sys.stdout.write("opened\n")

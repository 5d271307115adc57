"""open_ledger.py URL: makes or opens the ledger, at the same moment as other processes do."""

import sys

from slackwater.ledger.ledger import Ledger

sys.stdout.write("ready\n")
sys.stdin.readline()
Ledger.open(sys.argv[1], create=True).close()
sys.stdout.write("opened\n")

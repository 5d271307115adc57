"""Clicks per cleaned page: spark-submit hands the code that makes the keys of the state as an archive (--py-files)."""

import sys

from shop.counting import count

count(sys.argv[1])

"""Pages as the workers clean them: spark-submit hands all of it to driver and executors as an archive (--py-files)."""

import sys

from shop.pages import write

write(sys.argv[1])

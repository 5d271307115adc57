"""own.py CHECKPOINT TRIGGER KEY=VALUE ...: the query of ``clicks.py``, run by Spark alone until it ends."""

import sys
from runpy import run_path

from pyspark.sql import SparkSession

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for setting in sys.argv[3:]:
    builder = builder.config(*setting.split("="))
code = run_path("clicks.py")
query = code["per_page"](builder.getOrCreate())
output = query.writeStream.format(code.get("FORMAT", "parquet")).options(**code.get("OPTIONS", {"path": "out"}))
writer = query.writeStream.foreachBatch(code["write"]) if "write" in code else output
writer.option("checkpointLocation", sys.argv[1]).trigger(**{sys.argv[2]: True}).start().awaitTermination()

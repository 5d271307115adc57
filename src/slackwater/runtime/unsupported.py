"""What to do instead of an operation that Spark refuses on a stream, by Spark's own words for it.

Source: Structured Streaming programming guide, section "Unsupported operations"; messages as Spark 4.1 words them.
"""

from __future__ import annotations

KEEP_STREAM = "use an inner or left_outer join: the rows that are all kept have to be those of the stream"
INSTEAD = {
    "must be executed with writeStream.start()": "return the DataFrame before show, count, take or collect; "
    "read the rows from the stream's output",
    "Limits are not supported": "limit the rows when the output is read, or in each batch by sinks.foreach_batch",
    "Sorting is not supported": "sort the rows when the output is read, or after an aggregation in complete mode",
    "Distinct aggregations are not supported": "use approx_count_distinct, or dropDuplicates before the aggregation",
    "not supported for no streaming aggregations": 'use output_mode="append"',
    "only in Append output mode": 'use output_mode="append"',
    "in the join keys, or a watermark on the nullable side": "add .withWatermark to both inputs, and a bound on "
    "their event times to the join's condition",
    "LeftAnti joins": 'use a left_outer join, then .where("<a column of the right side> IS NULL")',
    "static DataFrame/Dataset on the left": "join the stream with the table, the stream on the left",
    "a static DataFrame/DataSet on the right not supported": KEEP_STREAM,
    "a static DataFrame/Dataset on the right is not supported": KEEP_STREAM,
    "'correctness' issue due to global watermark": 'use output_mode="append" with watermarks, or write the first '
    "aggregation to an output that a second stream reads",
    "dropDuplicatesWithinWatermark is not supported": 'add .withWatermark("<event time>", "<delay>") before it',
    "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING": "use windows of time (F.window), or rank the rows of each batch in "
    "sinks.foreach_batch",
    "pivot is not supported": 'aggregate each value by itself: F.sum(F.when(F.col("<column>") == "<value>", ...))',
    "Except on a streaming": "use a left_outer join of the streams with watermarks, and keep the rows without a match",
    "Intersect of streaming": "use a left_semi join of the streams with watermarks",
    "CONFLICTING_PARTITION_COLUMN_NAMES": "keep the partition columns of a folder: put files with others into a "
    "folder of their own, and read it as a second source",
    "Union between streaming and batch": "read the table as a stream, too, or write it to the output once",
}

"""The durable record across restarts, generations and lost checkpoints, and the lease that decides who may write now.

What may not happen here: importing pyspark, or SQLAlchemy (``status`` must start fast); changing or deleting a
checkpoint; losing a log line that was recorded, except by recording the same entry of the same generation again. Lines
of batches that an operation discarded are kept, but are not part of the stream's history (``lineage``). An error of the
ledger never reaches a running query (``recording.watcher``).
"""

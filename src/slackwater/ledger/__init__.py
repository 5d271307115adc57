"""The durable record across restarts, generations and lost checkpoints, and the lease that says who may write now.

What may not happen here: importing pyspark; importing Alembic where the schema is already the expected one (``status``
must start fast); changing or deleting a checkpoint; forgetting a log line that was recorded, except by recording the
same entry of the same generation anew. Lines of batches that an operation discarded stay stored but are never handed
out (``ancestry``). An error of the ledger never reaches a running query (``watcher``).
"""

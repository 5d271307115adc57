"""The durable record across restarts, generations and lost checkpoints, and each stream's lease.

Forbidden here: importing pyspark or SQLAlchemy (``status`` must start fast); changing a checkpoint; losing a recorded
log line, except to a new record of the same entry and generation. Lines of discarded batches are kept outside of the
history (``lineage``). A ledger error never reaches a running query (``recording.log_copier``).
"""

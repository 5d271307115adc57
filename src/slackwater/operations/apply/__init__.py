"""Applies plans: preconditions checked again, every step journaled before it is done, the old kept until pruned.

Only this package (and the runner) is given a ``WriteStore``. It imports no pyspark: batches are replayed by a
``Replayer``, which the runtime provides.
"""

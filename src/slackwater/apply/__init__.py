"""Carries plans out: preconditions checked again, every step journaled before it is done, the old kept until pruned.

Only this package (and the runner) is ever handed a ``WriteStore``. It imports no pyspark: the replay of batches is
asked of a ``Replayer``, which the runtime provides.
"""

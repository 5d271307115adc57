"""Applies plans: checks preconditions again, journals every step first, keeps the old until pruned.

Only this package and the runner get a ``WriteStore``. It imports no pyspark: the runtime provides a ``Replayer``.
"""

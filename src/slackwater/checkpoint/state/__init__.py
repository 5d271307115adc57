"""Rows of state, decoded without a JVM: a room of its own, whose modules import numpy and pyarrow.

``reader`` has the rows of a store, ``changelog`` files of changes. Others import no more than these, late.
"""

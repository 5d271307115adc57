"""The state of a checkpoint: its operators and stores, which versions can be loaded, and their rows.

``inventory`` answers from file names alone, ``operators`` reads metadata and schemas, ``reader`` decodes rows. Only
``reader`` and what it alone uses import numpy and pyarrow. Takes a ``ReadStore``; nothing is written.
"""

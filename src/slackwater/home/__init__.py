"""The folder in which streams keep their checkpoints, operations and ``stream.json``.

What may not happen: a path outside the home made from a name; half of a file.
"""

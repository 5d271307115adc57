"""The folder in which streams keep their checkpoints, operations and ``stream.json``.

What may not happen: a name that leads to a path outside the home; a partly written file.
"""

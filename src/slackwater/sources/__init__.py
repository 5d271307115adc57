"""Kinds of sources, one module each: which offsets are theirs, and what a range between two of them means.

What may not happen: IO, other than through what is handed in; a guess at an offset that no kind knows.
"""

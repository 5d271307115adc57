"""Kinds of sources behind one contract: which offsets belong to a kind, and what a range between two offsets means.

``contract`` is what callers see, ``registry`` finds the kind. What may not happen here: IO, other than through what is
passed in; a guess at the meaning of an offset that belongs to no kind.
"""

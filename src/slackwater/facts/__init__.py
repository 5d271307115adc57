"""Gathers what is known of a stream, or of a checkpoint that was never recorded, once and for all checks.

Nothing is written here, and nothing is judged: what cannot be read is a fact, too.
"""

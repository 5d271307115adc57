"""Gathers, once for all checks, what is known of a stream or of an unrecorded checkpoint.

Writes and judges nothing: unreadable data is a fact, too.
"""

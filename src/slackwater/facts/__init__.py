"""Gathers, once for all checks, the facts about a stream or an unrecorded checkpoint.

Writes and judges nothing: unreadable data is a fact, too.
"""

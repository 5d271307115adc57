"""Crash drills on a user's sink, and the process that runs them.

Nothing here runs in a pipeline that is not audited.
"""

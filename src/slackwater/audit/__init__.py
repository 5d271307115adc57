"""Crash drills on a sink of the user's: which there are, and the process in which they are run.

Nothing here runs in a pipeline that is not audited.
"""

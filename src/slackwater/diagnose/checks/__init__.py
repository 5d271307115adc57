"""The known problems of streams: a file for each area, a function for each problem.

The docstring of a function is what ``slackwater explain`` prints. A check compares facts that were gathered before, and
does no IO. ``number_line.AREAS`` and ``doctor.AREAS`` list the files.
"""

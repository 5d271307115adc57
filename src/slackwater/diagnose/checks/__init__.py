"""Known problems of streams: a file for each area, a function for each problem.

``slackwater explain`` prints a function's docstring. Checks compare gathered facts, and do no IO. ``number_line.AREAS``
and ``doctor.AREAS`` list the files.
"""

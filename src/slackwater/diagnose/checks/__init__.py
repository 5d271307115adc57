"""The checks of ``slackwater doctor``: each is one file with one finding of the catalogue of failures.

A folder is an area of the catalogue; a module's docstring is what ``slackwater explain`` prints. A check compares
facts that were gathered before, and does no IO. What decides whether a stream may start is in ``diagnose/rules``.
"""

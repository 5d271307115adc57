"""The findings: each rule is one file with one finding, and its module docstring is what ``slackwater explain`` prints.

A rule compares the facts of a snapshot and does no IO. It declares its severity, its risk and its place in the order.
"""

"""The demo: a real year of weather through the reference pipeline, killed, upgraded and restarted exactly.

It works from outside, as a user does: every step is a command in a process of its own, and the results are read from
the sinks' files. It imports no pyspark.
"""

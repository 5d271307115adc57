"""The demo: a real year of weather through the reference pipeline, killed, upgraded and restarted exactly.

It works from outside, as a user does: every step is a command line run in a process of its own, and what came out is
read from the sinks' files. It imports no pyspark.
"""

"""Where pyspark lives: sessions, pipelines, the runner, the listener and the replayer.

Nothing here is imported by commands that only read, and no module imports pyspark before it needs it.
"""

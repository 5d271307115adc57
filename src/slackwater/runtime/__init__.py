"""The code that uses PySpark: sessions, pipelines, runner, listener and replayer.

Read-only commands import nothing from here, and no module imports pyspark before it needs it.
"""

"""Starts Spark, and sets a session."""

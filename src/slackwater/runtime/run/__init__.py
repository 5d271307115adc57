"""Runs pipelines: checks before a start, the query, its end."""

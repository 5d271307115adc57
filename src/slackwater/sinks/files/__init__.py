"""Spark's file sink: data files below one directory, and the manifest that lists those that count."""

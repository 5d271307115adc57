"""Versions of Spark and of the formats that they write."""

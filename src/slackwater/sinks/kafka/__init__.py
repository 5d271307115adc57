"""Kafka topics: by Spark's own sink, at least once, or by one transaction for each batch, exactly once.

No password may leave this package but to a client of Kafka.
"""

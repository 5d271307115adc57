"""Kafka sources: the position of the next batch, compared with what the brokers have."""

"""A PostgreSQL table, exactly once: executors stage a batch, the driver publishes it with the marker's row."""

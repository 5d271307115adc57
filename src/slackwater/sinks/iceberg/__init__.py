"""Iceberg tables: a batch is staged aside and published together with its number, in one commit of the table."""

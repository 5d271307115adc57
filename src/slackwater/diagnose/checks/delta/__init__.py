"""Delta tables, as a source and as the target of a batch function."""

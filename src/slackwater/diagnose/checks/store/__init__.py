"""The store of a checkpoint, and what other programs leave or remove there."""

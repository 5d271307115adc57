"""What rules share: their type, and facts of a snapshot that several of them compare."""

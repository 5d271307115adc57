"""File sources: the log of a source in the checkpoint, and the files that it lists."""

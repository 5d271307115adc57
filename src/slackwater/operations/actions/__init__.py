"""One module for each kind of action."""

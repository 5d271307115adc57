"""One module for each kind of action: do it, and take it back. Each can be repeated after a kill at any point."""

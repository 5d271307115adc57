"""One module for each goal: what is run again, and where the stream continues."""

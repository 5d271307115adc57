"""One module for each goal."""

"""The base of goals."""

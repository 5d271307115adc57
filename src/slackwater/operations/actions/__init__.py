"""A module for each kind of action."""

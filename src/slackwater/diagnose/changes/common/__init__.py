"""The type of a change's text."""

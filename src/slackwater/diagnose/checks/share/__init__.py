"""Checkpoints that more than one query uses."""

"""Replays recorded batches into a new checkpoint."""

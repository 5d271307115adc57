"""Checkpoints and outputs that were copied or moved."""

"""Watermarks, as the logs of the checkpoint have them."""
